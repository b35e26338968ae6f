"""List the sources of the course by their short names on pages; `references.bib` has the rest."""

from typing import NamedTuple


class Source(NamedTuple):
    """Hold a source of the course.

    Attributes:
        name: the name as pages print it.
        url: the address, as in `references.bib`.
    """

    name: str
    url: str


# graphs
ALON = Source("Alon & Yahav (2021)", "https://arxiv.org/abs/2006.05205")
TOPPING = Source("Topping et al. (2022)", "https://arxiv.org/abs/2111.14522")
DI_GIOVANNI = Source("Di Giovanni et al. (2023)", "https://arxiv.org/abs/2302.02941")
BLACK = Source("Black et al. (2023)", "https://arxiv.org/abs/2302.06835")
KARHADKAR = Source("Karhadkar et al. (2023)", "https://arxiv.org/abs/2210.11790")
# language models
BARBERO = Source("Barbero et al. (2024)", "https://arxiv.org/abs/2406.04267")
WU = Source("Wu et al. (2025)", "https://arxiv.org/abs/2502.01951")
GU = Source("Gu et al. (2025)", "https://arxiv.org/abs/2410.10781")
BARBERO_SINK = Source("Barbero, Arroyo et al. (2025)", "https://arxiv.org/abs/2504.02732")
XIAO = Source("Xiao et al. (2024)", "https://arxiv.org/abs/2309.17453")
CHOWDHURY = Source("Chowdhury (2026)", "https://arxiv.org/abs/2603.10123")
SUN = Source("Sun et al. (2024)", "https://arxiv.org/abs/2402.17762")
GUO = Source("Guo et al. (2024)", "https://arxiv.org/abs/2410.13835")
# counting
YEHUDAI = Source("Yehudai et al. (2024)", "https://arxiv.org/abs/2407.15160")
ZHANG = Source("Zhang et al. (2024)", "https://arxiv.org/abs/2410.19730")
# positions
SU = Source("Su et al. (2021)", "https://arxiv.org/abs/2104.09864")
ROUND = Source("Barbero et al., Round and Round (2024)", "https://arxiv.org/abs/2410.06205")
MEN = Source("Men et al. (2024)", "https://arxiv.org/abs/2405.14591")
CHENG = Source("Cheng et al. (2026)", "https://arxiv.org/abs/2601.08297")
# differences of attention matrices, and other normalizers
YE = Source("Ye et al. (2025)", "https://arxiv.org/abs/2410.05258")
KONG = Source("Kong et al. (2025)", "https://arxiv.org/abs/2505.16333")
NAKANISHI = Source("Nakanishi (2025)", "https://arxiv.org/abs/2501.19399")
# the talk that this course grew from
TALK = Source(
    "Connection Bottleneck in Attention (talk)",
    "https://www.mtandhj.com/slides/attention-connection-bottleneck/",
)
# a reader's note on Barbero et al. (2024)
NOTE = Source(
    "Note on Transformers need glasses",
    "https://www.mtandhj.com/posts/llm-representational-collapse",
)
# findings that have no source but this course
COURSE = Source("This course", "about.html")
