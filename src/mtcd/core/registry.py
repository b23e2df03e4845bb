"""Names that a config may use, and the class behind each: built in, registered by a call, or
installed as a plugin.

A package that is installed beside mtcd adds to a registry by an entry point of its group, say
``mtcd.walks``:

    [project.entry-points."mtcd.walks"]
    spiral = "my_package.spiral:SpiralWalk"

Its code is imported when its name is used, and never otherwise: a config can only select among the
names that the person at this machine has installed. A name with a colon, ``module:Class``, is a
class in a file of the user's own: see :mod:`mtcd.core.own_code` for where that may be loaded.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from mtcd.core import features, own_code
from mtcd.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])


class Registry(Generic[T]):
    """The classes of one kind by name.

    Parameters
    ----------
    base
        The class that all of them inherit from.
    group
        The group of entry points by which other packages add to them.
    package
        Where the built-in ones are: the module of the same name is imported, or all of them where
        that does not have it; None if all of them are parts of features.
    unknown
        The beginning of the error about an unknown name.
    functions
        Whether functions that return an instance may be registered too.

    Examples
    --------
    >>> from mtcd.network.walks import WALKS
    >>> WALKS["lazy"].__name__
    'LazyWalk'
    >>> WALKS["tuor"]
    Traceback (most recent call last):
    mtcd.core.errors.ConfigError: unknown walk 'tuor': did you mean 'tour'?
    """

    def __init__(
        self,
        base: type,
        group: str,
        package: str | None,
        unknown: str,
        functions: bool = False,
    ) -> None:
        self.base = base
        self.group = group
        self.package = package
        self.unknown = unknown
        self.functions = functions
        self._classes: dict[str, T] = {}
        self._own: dict[str, T] = {}
        """Classes in files of the user's own, by 'module:Class'."""
        self._complete = False
        """Whether all built-in classes have been imported."""

    @overload
    def register(self, name: str) -> Callable[[C], C]: ...

    @overload
    def register(self, name: str, made: C) -> C: ...

    def register(self, name: str, made: C | None = None) -> C | Callable[[C], C]:
        """Add a class under a name, as a call or as a decorator.

        Raises
        ------
        ConfigError
            If the name is taken, or the class is of another kind.
        """
        if made is None:
            return lambda decorated: self.register(name, decorated)

        self._check(name, made, f"{self.group}: {name!r}")

        # A class of this library registers itself when it is imported: looking for all others would
        # import them in a circle.
        ours = getattr(made, "__module__", "").partition(".")[0] == "mtcd"
        if ours:
            taken = name in self._classes
        else:
            taken = name in self._known()
        if taken:
            raise ConfigError(
                f"{self.group}: the name {name!r} is taken by {_where(self._classes[name])}: "
                f"choose another name for {_where(made)}."
            )
        self._classes[name] = made  # type: ignore[assignment]
        return made

    def __getitem__(self, name: str) -> T:
        if own_code.is_own(name):
            return self._of_the_user(name)

        # The cheapest first: importing everything takes long, and entry points run foreign code.
        if name not in self._classes:
            self._import_file_of(name)
        if name not in self._classes and name in features.parts(self.group):
            # A class registers itself when it is imported.
            features.load(features.parts(self.group)[name])
        if name not in self._classes and name not in self._known():
            self._load(name)
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        if own_code.is_own(name):
            return name in self._own or own_code.may_run()
        if name in self._classes or name in self._known():
            return True
        return any(point.name == name for point in self._points())

    def __iter__(self) -> Iterator[str]:
        """All names, sorted; those of entry points too, whether their code works or not."""
        installed = {point.name for point in self._points()}
        return iter(sorted(installed | self._known().keys()))

    def usable(self) -> dict[str, T]:
        """All classes by name, without plugins that cannot be loaded: using one of these by name
        gives the error."""
        found = {}
        for name in self:
            try:
                found[name] = self[name]
            except ConfigError:
                continue
        return found

    def _of_the_user(self, name: str) -> T:
        """The class 'module:Class'. Once loaded, it is used wherever the name is given in this
        process."""
        # Loaded again where code may run: the file may have changed since, as in a notebook.
        if own_code.may_run() or name not in self._own:
            made = own_code.load(name, self.group)
            said = f"{self.group}: {name!r}"
            if not isinstance(made, type):
                raise ConfigError(
                    f"{said} must be a class, a subclass of {_where(self.base)}, but is {made!r}."
                )
            self._check(name, made, said)
            self._own[name] = made  # type: ignore[assignment]

        return self._own[name]

    def _known(self) -> dict[str, T]:
        """All built-in and registered classes."""
        if not self._complete:
            # Before the imports: a module that asks for names while it is imported must not start
            # again.
            self._complete = True
            homes = (home.partition(":")[0] for home in features.parts(self.group).values())
            for module in (*self._modules(), *homes):
                self._import_if_it_can_be(module)

        return self._classes

    def _import_if_it_can_be(self, module: str) -> None:
        """Import a module while looking for names, without one that needs a package which is not
        installed."""
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            # A package of others that is missing takes away its part; a module of ours that is
            # missing is a defect.
            if (error.name or "").partition(".")[0] == "mtcd":
                raise

    def _import_file_of(self, name: str) -> None:
        """Import the built-in module that has the name of a class."""
        file = str(name).replace("-", "_")
        for module in self._modules():
            if module.rpartition(".")[2] == file:
                importlib.import_module(module)

    def _modules(self) -> list[str]:
        """The modules of the package: names of files, so that what a config says is looked for
        nowhere else."""
        if self.package is None:
            return []

        folder = importlib.import_module(self.package).__path__
        modules = [module.name for module in pkgutil.iter_modules(folder) if not module.ispkg]
        return [f"{self.package}.{module}" for module in modules]

    def _points(self) -> tuple[EntryPoint, ...]:
        from importlib.metadata import entry_points  # takes a while to import, and few need it

        return tuple(entry_points(group=self.group))

    def _load(self, name: str) -> None:
        """The class of the entry point with this name; raises an error if there is none, or if it
        cannot be loaded."""
        points = [point for point in self._points() if point.name == name]
        if not points:
            raise ConfigError(
                f"{self.unknown.format(name)} {did_you_mean(name, self)}{self._shadowed()}"
            )

        # One package that is installed in two places gives the same entry point twice.
        origins = " and ".join(dict.fromkeys(_origin(point) for point in points))
        if len({point.value for point in points}) > 1:
            raise ConfigError(
                f"{self.group}: the name {name!r} is given twice, by {origins}: uninstall one of "
                f"them."
            )

        said = f"{self.group}: {name!r}, which is {origins},"
        try:
            made = points[0].load()
        except (Exception, SystemExit) as error:  # the plugin's code may raise anything
            raise ConfigError(
                f"{said} cannot be loaded ({type(error).__name__}: {error}): update or uninstall "
                f"that package."
            ) from error

        self._check(name, made, said)
        self._classes.setdefault(name, made)  # its module may have registered it by a call too

    def _shadowed(self) -> str:
        """A sentence on entry points that are not used, as their names are taken by built-in or
        registered classes."""
        loaded = {_where(made) for made in self._classes.values()}
        text = ""
        for point in self._points():
            if point.name in self._classes and point.value.replace(":", ".") not in loaded:
                text += f" (Not used, as the name {point.name!r} is taken: {_origin(point)}.)"

        return text

    def _check(self, name: object, made: object, said: str) -> None:
        """Reject an object that is not of this kind; functions are checked by their return type."""
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"{self.group}: a name is a text that is not empty, but this one is {name!r}."
            )

        fits = self.functions and callable(made)
        if isinstance(made, type):
            fits = issubclass(made, self.base)
        if not fits:
            raise ConfigError(f"{said} must be a subclass of {_where(self.base)}, but is {made!r}.")

        if inspect.isabstract(made):
            missing = ", ".join(sorted(getattr(made, "__abstractmethods__", ())))
            raise ConfigError(
                f"{said} does not define {missing}, as every {self.base.__name__} must."
            )


def _where(made: object) -> str:
    return f"{getattr(made, '__module__', '?')}.{getattr(made, '__qualname__', made)}"


def _origin(point: EntryPoint) -> str:
    package = ""
    if point.dist:
        package = f" of the package {point.dist.name}"
    return f"the entry point {point.value!r}{package}"
