"""What pictures of all kinds share: colours and dashes, sizes for papers, fonts for any script."""
