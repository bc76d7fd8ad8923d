"""The command ``corral``, which the other commands hang from."""

import click

from corral import __version__
from corral.cli._demo import demo


class _Failure(click.ClickException):
    exit_code = 2


class _SentenceGroup(click.Group):
    """Commands whose errors are one sentence, without a traceback."""

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of the output has gone; click ends quietly.
            raise
        except (ImportError, OSError, ValueError) as error:
            if ctx.params["debug"]:
                raise
            raise _Failure(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return str(error)


@click.group(
    cls=_SentenceGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="corral", message="%(prog)s %(version)s")
def corral(debug: bool) -> None:
    """Find clusters, and set aside the rows that fit nowhere."""


corral.add_command(demo)
