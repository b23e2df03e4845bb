"""Workers: processes on this machine, or actors of Ray, that run jobs for sweeps, experiments and
the planner."""

from mtcd.core.workers.pool import Failed, Job, News, QueueStatus, Workers
from mtcd.core.workers.processes import Backend, open_workers

__all__ = ["Backend", "Failed", "Job", "News", "QueueStatus", "Workers", "open_workers"]
