"""Workers: processes on this machine, or actors of Ray, that run jobs for sweeps, experiments and the planner."""

from mtcd.workers.choose import Backend, open_workers
from mtcd.workers.job import Failed, Job, News
from mtcd.workers.pool import Workers
from mtcd.workers.status import Status

__all__ = ["Backend", "Failed", "Job", "News", "Status", "Workers", "open_workers"]
