"""Options from a TOML file; the command line wins over it."""

import tomllib
from pathlib import Path
from typing import Any

import click

from corral.cli._errors import near_names
from corral.cli._names import Names
from corral.cli._numbers import Range

# Options of the call itself, which a file cannot hold. Leave to replace files is given
# for one call, not for all that read the file.
_NOT_IN_FILE = {"config", "debug", "force", "help"}


def config_option():
    """Return the decorator that adds ``--config``.

    Returns
    -------
    decorator : callable
    """
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="TOML file with options of this command; the command line wins over it.",
    )


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
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"'{path}' is not a TOML file: {error}.", ctx) from error
    options = {
        str(each.name): each
        for each in ctx.command.params
        if isinstance(each, click.Option) and each.name not in _NOT_IN_FILE
    }
    ctx.default_map = {}
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
        ctx.default_map[str(option.name)] = _as_typed(option, key, value, path, ctx)


def _find(key: str, options: dict[str, click.Option]) -> str | None:
    flag = f"--{key.replace('_', '-')}"
    return next((name for name, each in options.items() if flag in each.opts), None)


def _as_typed(
    option: click.Option, key: str, value: Any, path: Path, ctx: click.Context
) -> Any:
    """Return a value as the command line would give it, so that it is checked alike."""
    if option.is_flag:
        return _check(value, bool, "true or false", key, path, ctx)
    if isinstance(value, list) and isinstance(option.type, Names):
        return [[str(each) for each in value]]
    if isinstance(value, list) and isinstance(option.type, Range):
        return ",".join(map(str, value))
    if isinstance(value, list | dict):
        raise click.UsageError(
            f"'{path}' has {key} = {value!r}. It should be one value.", ctx
        )
    # As text, for click would cut 2.5 clusters to 2.
    return [str(value)] if option.multiple else str(value)


def _check(value, kind, should_be: str, key: str, path: Path, ctx: click.Context):
    if not isinstance(value, kind):
        raise click.UsageError(
            f"'{path}' has {key} = {value!r}. It should be {should_be}.", ctx
        )
    return value
