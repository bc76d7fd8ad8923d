"""``corral completion``: what makes the shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_CORRAL_COMPLETE"

_HOW_TO = """\
Add a line to the start-up file of your shell, then open a new shell.

bash, in ~/.bashrc:
    eval "$(corral completion bash)"

zsh, in ~/.zshrc:
    eval "$(corral completion zsh)"

fish, in ~/.config/fish/completions/corral.fish:
    corral completion fish | source"""


@click.command(
    epilog="""\b
Examples:
  corral completion
  eval "$(corral completion bash)"
"""
)
@click.argument(
    "shell",
    type=click.Choice(["bash", "zsh", "fish"]),
    required=False,
    metavar="[bash|zsh|fish]",
)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Let the shell complete commands and options.

    Prints the script for SHELL (bash, zsh or fish); without SHELL, how to use it.
    """
    if shell is None:
        click.echo(_HOW_TO)
        return
    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    click.echo(kind(root, {}, "corral", _VARIABLE).source())
