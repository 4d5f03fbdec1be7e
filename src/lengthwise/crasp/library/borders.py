"""Languages of no suite that mark the borders of C-RASP: beyond regular ones (``dyck``, ``an-bn-cn``), and on
either side of what positions, distances and acceptance at the last letter add.
"""

from lengthwise.crasp.library.languages import HEIGHT, dyck, language

LANGUAGES = (
    language(
        "dyck",
        "Dyck-1",
        "brackets a and b, to any depth",
        "ab",
        text=HEIGHT + "accept = # (d < 0) == 0 && d == 0",
    ),
    dyck(1),
    language(
        "an-bn-cn",
        "a^n b^n c^n",
        "equally many a, then b, then c",
        "abc",
        text='late = ("a" && exists ("b" || "c")) || ("b" && exists "c")\n'
        'accept = # late == 0 && # "a" == # "b" && # "b" == # "c"',
    ),
    language(
        "aa-star-ab",
        "(aa)* over {a,b}",
        "there is no b, and the length is even",
        "ab",
        text='accept = # "b" == 0 && i % 2 == 0',
        regex="(aa)*",
    ),
    language(
        "ab-ba-star",
        "(ab+ba)*",
        "pairs of unlike letters",
        "ab",
        text=HEIGHT + "bad = d > 1 || d < -1\naccept = # bad == 0 && d == 0",
        regex="(ab|ba)*",
    ),
    language("ab-bba-star", "(ab+bba)*", "each block is ab or bba", "ab", regex="(ab|bba)*"),
    language(
        "ab-bbaa-star",
        "(ab+bbaa)*",
        "each block is ab or bbaa",
        "ab",
        text=HEIGHT + 'down = "b" && d == -1\nbad = d < -2 || d > 1 || (d == 0 && # down != # (d == -2))\n'
        "accept = # bad == 0 && d == 0",
        regex="(ab|bbaa)*",
    ),
    language("ab-aabb-star", "(ab+aabb)*", "each block is ab or aabb", "ab", regex="(ab|aabb)*"),
    language("contains-a", "S*aS*", "a occurs", "ab", text='accept = exists "a"', regex="(a|b)*a(a|b)*"),
    language(
        "starts-with-a",
        "aS*",
        "the first letter is a",
        "ab",
        text='accept = exists ("a" && len == 1)',
        regex="a(a|b)*",
    ),
    language("ends-in-a", "S*a", "the last letter is a", "ab", text='accept = "a"', regex="(a|b)*a"),
    language(
        "a-to-b",
        "aS*b",
        "the first letter is a, the last b",
        "ab",
        text='accept = "b" && exists ("a" && len == 1)',
        regex="a(a|b)*b",
    ),
    language(
        "contains-aa",
        "S*aaS*",
        "aa occurs",
        "ab",
        text='accept = exists ("a" && prev "a")',
        regex="(a|b)*aa(a|b)*",
    ),
    language(
        "contains-ab",
        "S*abS*",
        "ab occurs",
        "ab",
        text='accept = exists ("b" && exists "a")',
        regex="(a|b)*ab(a|b)*",
    ),
    language(
        "contains-ab-abc",
        "S*abS*, S = {a,b,c}",
        "ab occurs; there is a third letter",
        "abc",
        text='accept = exists ("b" && prev "a")',
        regex="(a|b|c)*ab(a|b|c)*",
    ),
    language("flip-flop", "{a,b,e}*be*", "the last letter other than e is b", "abe", regex="(a|b|e)*be*"),
    language(
        "tomita-3-later",
        "Tomita 3, later",
        "no odd run of 0 after an odd run of 1",
        "01",
        regex="(0|11)*(()|1((00)*1*)*)",
    ),
)
"""All of them."""
