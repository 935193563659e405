"""Words that went: as names of modules, classes, functions, parameters and fields, and in sentences."""

# The word that went: the field's word, and folders where it names another thing.
GONE: dict[str, tuple[str, tuple[str, ...]]] = {
    "acting": ("inference", ()),
    "beginning": ("warm start", ()),
    "behaviour": ("opponents", ()),
    "broker": ("driver", ()),
    "cadence": ("every", ()),
    "crew": ("executor", ()),
    "crews": ("executors", ()),
    "distributions": ("histograms", ()),
    "door": ("resolve", ()),
    "doors": ("resolve", ()),
    "frozen": ("trained players", ()),
    "keeper": ("supervisor", ()),
    "kernels": ("matmul", ()),
    "mixed": ("master weights", ()),
    "pace": ("rate limiter", ("play",)),  # the setting of a table
    "starts": ("launches", ("sette_mezzo", "train/dqn", "train/settings")),  # `learning_starts`, `idle_starts`
    "symmetric": ("equivariant", ("train/settings",)),  # the setting `network.symmetric`
    "taken": ("occupied", ("tressette",)),  # points of tricks
}
# Classes of one name in several modules: each game has its own.
PER_GAME = {"GameBoard", "GameScreen", "Options"}
# Phrases that are not plain English, in whatever readers see.
RELAPSES = ("goes on with", "go on with", "is told", "what comes of", "nobody", "whoever", "so many")
