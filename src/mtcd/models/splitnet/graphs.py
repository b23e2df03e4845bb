"""The fast versions of ``client.py`` and ``fusion.py`` on a GPU: a local update is recorded once,
and then replayed.

In a network of many small layers the GPU waits for kernel launches; a CUDA graph launches all of
them at once. A graph uses fixed memory, so batch, aggregate and representation are copied into and
out of static buffers.

Every recording has its own stream, memory pool and cuBLAS workspace: graphs that share one silently
corrupt each other when two are replayed concurrently.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from mtcd.models.splitnet.client import NetClient
from mtcd.models.splitnet.fusion import NetFusion
from mtcd.models.splitnet.lanes import new_stream
from mtcd.models.splitnet.modules import Trainable
from mtcd.protocol.model import Visit

WARM_UP = 2


class Recording:
    """Work on the device that can be replayed. The tensors that it reads and writes must not move
    in memory."""

    def __init__(self, work: Callable[[], None], moved: Sequence[Trainable]) -> None:
        # The warm-up takes real steps: they are undone below, or the training would start
        # elsewhere.
        before = [(one, one.state(), one.buffers()) for one in moved]
        device = torch.device("cuda", torch.cuda.current_device())
        stream = new_stream(device)
        stream.wait_stream(torch.cuda.current_stream())
        try:
            # Dropout draws in the warm-up too: the generator goes back to where it was.
            with torch.random.fork_rng(devices=[device]):
                with torch.cuda.stream(stream):
                    _warm_up(work)
                torch.cuda.synchronize()
                torch._C._cuda_clearCublasWorkspaces()  # so that the recording allocates its own
                self.graph = _recorded(work, stream, device)
                torch._C._cuda_clearCublasWorkspaces()
        finally:
            for one, state, buffers in before:  # undo the steps of the warm-up
                one.load(state)
                one.load_buffers(buffers)
            torch.cuda.synchronize()

    def replay(self) -> None:
        """Run the recorded work."""
        self.graph.replay()


def _warm_up(work: Callable[[], None]) -> None:
    """Run the work, so that libraries choose their kernels. It fails if the work synchronises with
    the device."""
    work()
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mode warns that it may miss some synchronisations
            # A recording must not synchronise. This finds out before the recording, which would
            # only fail with a message of CUDA.
            torch.cuda.set_sync_debug_mode("error")
        for _ in range(WARM_UP):
            work()
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _recorded(
    work: Callable[[], None], stream: torch.cuda.Stream, device: torch.device
) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle()
    generator = torch.cuda.default_generators[device.index]
    before = generator.clone_state()
    try:
        # thread_local: allocations of other threads must not spoil the recording.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            work()
    except RuntimeError:
        generator.graphsafe_set_state(before)  # a failed recording leaves it unusable
        raise
    return graph


class GraphClient(NetClient):
    """Client k with recordings of a local update and of a forward pass, made on first use."""

    x: Tensor
    y: Tensor
    rest: Tensor
    h: Tensor
    _t = -1

    def represent(self, t: int) -> Tensor:
        """h_k on the batch of iteration t."""
        self._read(t)
        self._pass((t,), track=True)
        return self.h.clone()

    def local_update(self, H: Tensor, theta_0: Sequence[Tensor], visit: Visit) -> Tensor:
        """Q local updates of theta_k, and of theta_0 in place if ``visit.fuses``; returns the new H
        of the token."""
        self._read(visit.t)
        aggregation = self.around.aggregation
        # before the first contribution, h is 0
        self.rest.copy_(aggregation.rest(H, self.k, self.h))
        self.fusion.put(theta_0)
        # The rate is a tensor that the recording reads: it can change between replays.
        for one in (self.net, self.fusion):
            one.set_rate(visit.stepsize)
        update = self._update(visit.fuses)
        for _ in range(visit.local_updates):
            with self.around.drawing(self.k, visit.draw):
                update.replay()
        self._pass(visit.draw, track=visit.updates_statistics)
        if visit.fuses:
            torch._foreach_copy_(list(theta_0), self.fusion.parameters)
        return aggregation.put(self.rest, self.k, self.h)

    def prepare(self) -> None:
        """Record the steps of every training, so that one that cannot be recorded fails before it
        starts."""
        self._read(0)
        self._forward(track=True)
        self._update(fuse=False)

    def _pass(self, draw: tuple[int, ...], track: bool) -> None:
        """Compute the representation of the batch into its buffer."""
        forward = self._forward(track)
        with self.around.drawing(self.k, draw):
            forward.replay()
        self.contribution = self.h

    def _forward(self, track: bool) -> Recording:
        def work() -> None:
            self.h.copy_(self.forward(self.x, None, track))

        return self._recorded(f"forward {track}", work, [self.net])

    def _update(self, fuse: bool) -> Recording:
        def work() -> None:
            self.update(self.rest, self.x, self.y, None, None, fuse)

        moved = [self.net, self.fusion] if fuse else [self.net]
        return self._recorded(f"update {fuse}", work, moved)

    def _read(self, t: int) -> None:
        """Copy the batch of iteration t into its buffers."""
        # Several tokens visit on one batch: it is copied once.
        if t == self._t:
            return
        x = self.features.batch(t)
        y = self.labels.batch(t)
        # Sizes are known with the first batch, and are the same for all.
        if self._t < 0:
            self._allocate(x, y)
        self.x.copy_(x)
        self.y.copy_(y)
        self._t = t

    def _allocate(self, x: Tensor, y: Tensor) -> None:
        """Allocate the buffers that the recordings read and write."""
        aggregation = self.around.aggregation
        contribution = self.contribution
        self.x = self.net.laid_out(x).clone()
        self.y = y.clone()
        self.rest = torch.zeros(len(x), aggregation.width, device=x.device)
        self.h = torch.zeros(len(x), aggregation.widths[self.k], device=x.device)
        if contribution is not None:
            self.h.copy_(contribution)
        self._recordings: dict[str, Recording] = {}

    def _recorded(
        self, name: str, work: Callable[[], None], moved: Sequence[Trainable]
    ) -> Recording:
        if name not in self._recordings:
            # The warm-up of a recording overwrites h, which holds the contribution to the token.
            before = self.h.clone()
            self._recordings[name] = Recording(work, moved)
            self.h.copy_(before)
        return self._recordings[name]

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a copy into the network."""
        super().load(state)
        if self._t >= 0:
            if self.contribution is None:
                self.h.zero_()
            else:
                self.h.copy_(self.contribution)


class GraphFusion(NetFusion):
    """theta_0 with a recording of its update."""

    H: Tensor
    y: Tensor
    before: Tensor
    """The loss before the step that was last replayed."""
    _recordings: dict[bool, Recording]

    def local_update(self, H: Tensor, t: int, steps: int, eta: float) -> Tensor:
        """Steps of theta_0 on the aggregate of iteration t; returns the loss before the first."""
        if not self.net.parameters:
            return self.loss(H, (), t)
        if not hasattr(self, "H"):
            self.H = H.clone()
            self.y = self.labels.batch(t).clone()
            self._recordings = {}
            self.before = torch.zeros((), device=H.device)
        self.H.copy_(H)
        self.y.copy_(self.labels.batch(t))
        self.net.set_rate(eta)
        first = self.before
        for q in range(steps):
            recording = self._recorded(track=q == 0)
            with self.around.drawing(self.number, (t,)):
                recording.replay()
            if q == 0:
                first = self.before.clone()  # the next replay overwrites it
        return first

    def _recorded(self, track: bool) -> Recording:
        # Without layers that keep statistics both recordings are the same one.
        track = track and bool(self.net.norms)
        if track not in self._recordings:

            def work() -> None:
                self.before.copy_(self.update(self.H, self.y, None, None, track))

            self._recordings[track] = Recording(work, [self.net])
        return self._recordings[track]
