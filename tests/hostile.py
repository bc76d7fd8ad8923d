"""Words that a page, a template or a terminal would obey, were they not escaped."""

from corral._visible import spell_out

# Each would set ``hacked``, show a box, or turn the words beside it around.
WORDS = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror=hacked=1>',
    "'><svg onload=hacked=1>",
    "</script><script>hacked = 1</script>",
    "</style></title></textarea><script>alert(1)</script>",
    "<!--<script>",
    "]]><b>",
    "<a href=javascript:hacked=1>",
    "javascript:hacked=1",
    "{{ 7*7 }}${7*7}<%= 7*7 %>",
    "&lt;b&gt;",
    "turned \u202e and \u2066 isolated",
    "no\x00thing, \x1b[31mred\x9b0m",
)

# The same as they are shown.
SHOWN = tuple(map(spell_out, WORDS))


def check_harmless(browser, *, n_scripts):
    """Check that nothing of the words has become a part of the page.

    A box that is open would be an error of any call.
    """
    found = browser.execute_script(
        "return [window.hacked ?? null, document.scripts.length,"
        " document.querySelectorAll('img, iframe, svg[onload], [href*=hacked]').length,"
        " document.documentElement.outerHTML]"
    )
    assert found[:3] == [None, n_scripts, 0]
    assert spell_out(found[3]) == found[3]
