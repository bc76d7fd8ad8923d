"""A group of commands, each of which is imported when it is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click

from corral.cli._errors import as_sentences, near_names, set_debug

HELP_NAMES = ("-h", "--help")


class Entry(NamedTuple):
    """Where a command is, and what it does.

    Attributes
    ----------
    module : str
        Holds the command under its own name, with _ for -.
    help : str
        One line, the same as the first line of the command's own help.
    """

    module: str
    help: str


class LazyGroup(click.Group):
    """Commands that are imported when they are called, so that help is quick.

    Parameters
    ----------
    *arguments, **settings
        Of ``click.Group``.
    entries : mapping of str to Entry
    """

    def __init__(self, *arguments, entries: Mapping[str, Entry], **settings):
        super().__init__(*arguments, **settings)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the entries."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        if name not in self.entries:
            return None
        module = import_module(self.entries[name].module)
        command = getattr(module, name.replace("-", "_"))
        _add_common(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """Find the command that the arguments name, or say what is near."""
        if args[0] not in self.entries and not ctx.resilient_parsing:
            hint = near_names(args[0], self.entries)
            raise click.UsageError(f"There is no command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter):
        """Write the commands with their one line, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.help) for name, each in self.entries.items()]
            )


class SentenceGroup(LazyGroup):
    """The outermost group: all that goes wrong below it becomes a sentence."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command."""
        with as_sentences(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context):
        """Read the rest of the line and run the command."""
        with as_sentences(ctx):
            return super().invoke(ctx)


def _add_common(command: click.Command) -> None:
    """Let --debug and -h stand behind the name of a command and those below it."""
    if all(each.name != "debug" for each in command.params):
        command.params.append(debug_option())
    # Click keeps the names of help that it meets first, also without the group above.
    command.context_settings.setdefault("help_option_names", list(HELP_NAMES))
    for each in getattr(command, "commands", {}).values():
        _add_common(each)


def debug_option() -> click.Option:
    """Return the option --debug, which every command has.

    Returns
    -------
    option : click.Option
    """
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=set_debug,
        help="Show the traceback of an error.",
    )
