"""Workers: processes on this machine, or actors of Ray, that run jobs for sweeps, experiments and
the planner."""

from mtcd.core.workers.choose import Backend, open_workers
from mtcd.core.workers.job import Failed, Job, News
from mtcd.core.workers.pool import Workers
from mtcd.core.workers.status import Status

__all__ = ["Backend", "Failed", "Job", "News", "Status", "Workers", "open_workers"]
