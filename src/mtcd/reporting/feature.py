"""Pages and pictures of runs."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.attachments": {"trace": "mtcd.reporting.trace.trace:Trace"},
        "mtcd.run": {
            "_repr_html_": "mtcd.reporting.html:run_html",
            "plot": "mtcd.reporting.plots:plot_run",
            "plot_evaluation": "mtcd.reporting.evaluation_plots:plot_run_evaluation",
        },
        "mtcd.run_pictures": {"history": "mtcd.reporting.plots:plot_runs"},
        "mtcd.cli.train": {"live": "mtcd.reporting.commands:LiveOptions"},
        "mtcd.listeners": {"trace": "mtcd.reporting.trace.listener:TraceListener"},
        "mtcd.federation_pages": {
            "dashboard": "mtcd.reporting.federation_dashboard:show_dashboard"
        },
    },
    run_files=("history.pdf", "history.png", "trace.npz"),
    public_names={"report": "mtcd.reporting.report"},
    commands={"": "mtcd.reporting.commands:app"},
)
