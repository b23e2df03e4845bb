"""Which test files are asked about the mutants of which package; of these, the tests that call what is mutated."""

TRAINING = [
    "test_twins",
    "test_defaults",
    "test_token",
    "test_steps",
    "test_ledger",
    "test_engine_contract",
    "test_methods",
    "test_training",
    "test_divergence",
]
SETTINGS = ["test_local_solver", "test_transport", "test_warm_start"]
SPLIT = [
    "test_split_twins",
    "test_split_twin",
    "test_split_token",
    "test_split_modules",
    "test_split_optimisers",
    "test_split_training",
    "test_split_checkpoints",
]
SPLIT_NETWORKS = [
    *SPLIT,
    "test_split_errors",
    "test_split_strange",
    "test_split_folders",
    "test_split_gpu",
    "test_nets",
    "test_defaults",
    "test_onnx",
]
TOURS = [
    "test_acceleration",
    "test_adaptive_tours",
    "test_optimal_sync",
    "test_dcpa",
    "test_relays",
    "test_membership",
    "test_tree_cg",
]
NETWORK = [
    "test_strange_input",
    "test_geometric",
    "test_network_basics",
    "test_complete_network",
    "test_topology",
    "test_walks",
    "test_clusters",
    "test_communities",
    "test_repair",
    "test_changes",
    "test_spanning",
]
THEORY = ["test_theory", "test_theory_bounds", "test_theory_mixing", "test_theory_visits", "test_theory_inspect"]
STEPSIZES = ["test_stepsize", "test_smoothness", "test_own_stepsize"]
RECOVERY = [
    "test_delivery",
    "test_recovery_gathering",
    "test_recovery_choose",
    "test_delivery_codecs",
    "test_delivery_end",
    "test_delivery_journal",
    "test_delivery_policy",
    "test_recovery_lone_token",
    "test_recovery_lone_token_down",
    "test_recovery_methods",
    "test_recovery_speculative",
    "test_recovery_speculative_cases",
    "test_recovery_roaming",
    "test_recovery_search",
    "test_recovery_promises",
]
METHODS = [*TRAINING, "test_masking", *TOURS, *SETTINGS, "test_paper_values", "test_randomness", "test_wire", *SPLIT]
NEAR: dict[str, list[str]] = {
    "methods": METHODS,
    "methods/accelerations": METHODS,
    "methods/combine": METHODS,
    "model": [
        *TRAINING,
        *SETTINGS,
        "test_optimum",
        "test_frames",
        "test_runs",
        "test_views",
        "test_adaptive_tours",
        "test_dcpa",
        "test_tree_cg",
        "test_own_problem",
        "test_own_block",
        "test_onnx",
        "test_weights",
        "test_prepared_data",
        "test_evaluation",
    ],
    "protocol": [*TRAINING, *TOURS, *SETTINGS, "test_trace", "test_randomness", "test_wire", *SPLIT],
    "network": [*NETWORK, "test_membership", "test_methods", "test_dcpa", "test_theory_mixing"],
    "network/walks": [*NETWORK, *THEORY, "test_theory_own_walks", "test_own_parts", "test_membership", "test_methods"],
    "ledger": ["test_ledger", "test_defaults", "test_token", "test_training", "test_engine_contract"],
    "theory": [*THEORY, "test_theory_lone_bound", "test_theory_own_walks", *STEPSIZES, "test_training"],
    "federation/delivery": RECOVERY,
    "federation/recovery": RECOVERY,
    "splitnet": SPLIT_NETWORKS,
    "splitnet/nets": SPLIT_NETWORKS,
}
GPU_ONLY = ("src/mtcd/splitnet/graphs.py", "src/mtcd/splitnet/lanes.py")
"""Modules whose code runs on a GPU alone: without one, their tests are skipped and every mutant would live."""
