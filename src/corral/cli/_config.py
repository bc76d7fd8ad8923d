"""Options from a TOML file; the command line wins over it."""

import reprlib
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import click

from corral.cli._errors import near_names
from corral.cli._names import FilePath, Names
from corral.cli._numbers import Range

# Options of the call itself, which a file cannot hold. Leave to replace files is given
# for one call, not for all that read the file.
_NOT_IN_FILE = {"config", "debug", "force", "help"}

# Where a call remembers the file.
_META = "corral.config"


def config_option():
    """Return the decorator that adds ``--config``.

    Returns
    -------
    decorator : callable
    """
    return click.option(
        "--config",
        type=FilePath(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="TOML file with options of this command; the command line wins over it.",
    )


def config_files(ctx: click.Context) -> list[Path]:
    """Return the file that the options come from, which is an input, too.

    Parameters
    ----------
    ctx : click.Context

    Returns
    -------
    files : list of Path
        One or none.
    """
    return [ctx.meta[_META]] if _META in ctx.meta else []


def from_file(ctx: click.Context, name: str) -> bool:
    """Return whether the value of an option comes from the file.

    Parameters
    ----------
    ctx : click.Context
    name : str
        Of the parameter.

    Returns
    -------
    answer : bool
    """
    source = ctx.get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT_MAP


def _read(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    ctx.meta[_META] = path
    try:
        # Editors of Windows begin a file with a mark, which TOML does not know.
        settings = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as error:
        raise click.UsageError(
            f"'{path}' is not a TOML file of options: its lists or tables are nested "
            "too deeply. Write one value, or one list, for each option.",
            ctx,
        ) from error
    except ValueError as error:
        # Of the syntax, of the encoding, or a number of too many digits.
        raise click.UsageError(f"'{path}' is not a TOML file: {error}.", ctx) from error
    options = {
        str(each.name): each
        for each in ctx.command.params
        if isinstance(each, click.Option) and each.name not in _NOT_IN_FILE
    }
    ctx.default_map = {}
    keys: dict[str, str] = {}
    for key, value in settings.items():
        option = options.get(_find(key, options) or "")
        if option is None:
            if key == "force":
                raise click.UsageError(
                    f"'{path}' has the key 'force', which a file cannot hold. Say "
                    "--force on the command line.",
                    ctx,
                )
            names = [max(each.opts, key=len).lstrip("-") for each in options.values()]
            hint = near_names(key, names)
            raise click.UsageError(f"'{path}' has the key {key!r}. {hint}", ctx)
        name = str(option.name)
        if name in keys:
            raise click.UsageError(
                f"'{path}' has the keys {keys[name]!r} and {key!r}, which are the same "
                "option. Keep one of them.",
                ctx,
            )
        keys[name] = key
        ctx.default_map[name] = _as_typed(option, key, value, path, ctx)


def _find(key: str, options: dict[str, click.Option]) -> str | None:
    flag = f"--{key.replace('_', '-')}"
    return next((name for name, each in options.items() if flag in each.opts), None)


def _as_typed(
    option: click.Option, key: str, value: Any, path: Path, ctx: click.Context
) -> Any:
    """Return a value as the command line would give it, so that it is checked alike."""
    if option.is_flag:
        return _check(value, bool, "true or false", key, path, ctx)
    is_list = isinstance(value, list)
    is_plain = is_list and not any(isinstance(each, list | dict) for each in value)
    if is_plain and isinstance(option.type, Names):
        return [[str(each) for each in value]]
    if is_plain and isinstance(option.type, Range):
        return ",".join(map(str, value))
    if isinstance(value, list | dict):
        takes_list = isinstance(option.type, Names | Range)
        should_be = "one value, or a list of them" if takes_list else "one value"
        _refuse(value, should_be, key, path, ctx)
    # As text, for click would cut 2.5 clusters to 2.
    return [str(value)] if option.multiple else str(value)


def _check(value, kind, should_be: str, key: str, path: Path, ctx: click.Context):
    if not isinstance(value, kind):
        _refuse(value, should_be, key, path, ctx)
    return value


def _refuse(
    value: Any, should_be: str, key: str, path: Path, ctx: click.Context
) -> NoReturn:
    # Shortened: keys with dots can nest tables deeper than repr can follow.
    text = reprlib.repr(value)
    raise click.UsageError(
        f"'{path}' has {key} = {text}. It should be {should_be}.", ctx
    )
