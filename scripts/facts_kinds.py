"""The kinds of entities in the world of qa:Facts: their names, and the templates of their facts.

In the templates, {x} is the entity, {v} the value, {they} and {their} a person's pronouns, and {trade} the profession
of a person. The file is long because it is mostly templates.
"""

from __future__ import annotations

from typing import NamedTuple

from facts_values import Earlier, Invented, Link, Number, Pair, Teacher, Value, Year


class Fact(NamedTuple):
    """A fact about an entity.

    statements: sentences that state it. questions: questions for its value. noun: where the value is an entity,
    a phrase for it such as "the town where {x} was born", which replaces {x} in two-hop questions.
    """

    name: str
    value: Value
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    noun: str = ""


class Kind(NamedTuple):
    """A kind of entity.

    number: of entities. noun: short reference to one of them; persons are referred to by surname. forms: of names, with
    a place for an invented word that has one of the endings. facts: the first one opens the passage.
    """

    number: int
    noun: str
    forms: tuple[str, ...]
    endings: tuple[str, ...]
    facts: tuple[Fact, ...]


TRADES = (
    "sailor",
    "writer",
    "engineer",
    "climber",
    "naturalist",
    "architect",
    "cook",
    "composer",
    "merchant",
    "healer",
)
COLOURS = (
    "silver",
    "green",
    "scarlet",
    "white",
    "black",
    "golden",
    "purple",
    "red",
    "copper",
    "pale",
    "striped",
    "blue",
)
BEASTS = (
    "otter",
    "heron",
    "badger",
    "hare",
    "falcon",
    "lynx",
    "toad",
    "swan",
    "weasel",
    "ram",
    "beetle",
    "pike",
    "mole",
)
GOODS = ("salt", "amber", "wool", "pepper", "candles", "cork", "copper", "honey", "paper", "barley", "glass", "lentils")
STATES = ("raw", "smoked", "pressed", "dried", "blue", "salted", "bottled", "spun", "milled", "white", "coarse", "dyed")
STUFFS = ("brass", "cedar", "pewter", "bone", "slate", "walnut", "felt", "bronze", "horn", "tin", "leather", "clay")
PARTS = ("gears", "bellows", "mirrors", "reeds", "pipes", "hinges", "paddles", "springs", "bells", "ribs", "cogs")

PERSON = Kind(
    110,
    "",
    ("{}",),
    ("ane", "ric", "eth", "ou", "ulf", "idge", "ask", "orn", "ivar", "ence"),
    (
        Fact(
            "birthplace",
            Link("town"),
            (
                "{x}, {trade} by calling, was born in {v}.",
                "The {trade} {x} came into the world in {v}, where {their} parents kept a small shop.",
                "{v} was the birthplace of the {trade} {x}, who left it early.",
            ),
            ("In which town was {x} born?", "What is the birthplace of {x}?"),
            "the town where {x} was born",
        ),
        Fact(
            "birth",
            Year(450, 1100),
            (
                "The parish roll gives {v} as the year of birth of {x}.",
                "{they} was born in the year {v}, the youngest of a large family.",
                "A letter shows that {x} was born in {v}.",
            ),
            ("In what year was {x} born?", "When was {x} born?"),
        ),
        Fact(
            "teacher",
            Teacher(),
            (
                "{x} learned the trade from {v}, with whom {they} later quarrelled.",
                "{their} teacher was {v}, by then well advanced in years.",
                "As a pupil of {v}, {x} showed little promise at first.",
            ),
            ("Who taught {x}?", "Who was the teacher of {x}?"),
            "the teacher of {x}",
        ),
        Fact(
            "house",
            Invented("{} Lane", ("ick", "otter", "asp", "umble")),
            (
                "For most of {their} life {x} rented two rooms in {v}.",
                "{they} kept a narrow house in {v}, which still stands.",
                "Visitors found {x} at home in {v}, usually at work.",
            ),
            ("In which street did {x} live?", "In which lane was the home of {x}?"),
        ),
        Fact(
            "pet",
            Pair(
                ("lame", "tame", "one-eyed", "grey", "spotted", "noisy", "blind", "fat", "shy", "three-legged"), BEASTS
            ),
            (
                "A {v} followed {x} everywhere and slept under the desk.",
                "In paintings {they} appears with a {v}, the only company {they} could bear.",
                "In old age {x} shared {their} meals with a {v}.",
            ),
            ("What kind of animal did {x} keep?", "Which animal was the companion of {x}?"),
        ),
        Fact(
            "debt",
            Number(40, 900, ("crowns",)),
            (
                "{they} died owing {v} crowns to the landlord.",
                "When {x} died, debts of {v} crowns came to light.",
                "The estate of {x} was settled once a debt of {v} crowns had been paid.",
            ),
            ("How many crowns did {x} owe at death?", "How large, in crowns, was the debt that {x} left behind?"),
        ),
    ),
)
TOWN = Kind(
    70,
    "the town",
    ("{}",),
    ("enholm", "awick", "estad", "amouth", "egard", "aby", "eminster", "ehithe"),
    (
        Fact(
            "river",
            Link("river"),
            (
                "{x} is a town on the banks of {v}.",
                "The town of {x} grew up around a ford through {v}.",
                "{v} runs through the middle of {x}, a town of slate roofs.",
            ),
            ("Which river runs through {x}?", "On which river does {x} stand?"),
            "the river that runs through {x}",
        ),
        Fact(
            "founded",
            Year(150, 400),
            (
                "Its charter says that {x} was founded in the year {v}.",
                "Settlers from the coast founded {x} in {v}, after two bad harvests.",
                "{x} has counted its birthdays from {v}, when the first well was dug.",
            ),
            ("In what year was {x} founded?", "When was {x} founded?"),
        ),
        Fact(
            "people",
            Number(1200, 48000, ("people", "inhabitants")),
            (
                "At the last count {x} had {v} inhabitants.",
                "Some {v} people live in {x} today, most of them within the walls.",
                "The tax book of {x} lists {v} people.",
            ),
            ("How many people live in {x}?", "What is the number of inhabitants of {x}?"),
        ),
        Fact(
            "walls",
            Link("architect"),
            (
                "Its walls were drawn up by {v}, who was never paid in full.",
                "The walls of {x} are the work of {v}.",
                "{x} owes its ring of walls to the architect {v}.",
            ),
            ("Who planned the walls of {x}?", "Which architect designed the walls of {x}?"),
            "the architect of the walls of {x}",
        ),
        Fact(
            "arms",
            Pair(COLOURS, BEASTS),
            (
                "The arms of {x} show a {v}.",
                "A {v} stands on the town's coat of arms, above three waves.",
                "Carters from {x} paint a {v}, the town's arms, on their doors.",
            ),
            ("Which animal is shown on the arms of {x}?", "Which animal is on the coat of arms of {x}?"),
        ),
    ),
)
RIVER = Kind(
    36,
    "the river",
    ("the {}", "the river {}"),
    ("ure", "une", "avon", "eld", "isk", "oum"),
    (
        Fact(
            "source",
            Link("mountain"),
            (
                "{x} rises on the slopes of {v}.",
                "High on {v} a spring feeds {x}, a river of cold brown water.",
                "The river known as {x} has its source on {v}.",
            ),
            ("On which mountain does {x} rise?", "On which mountain is the source of {x}?"),
            "the mountain on which {x} rises",
        ),
        Fact(
            "length",
            Number(90, 1900, ("kilometres", "km")),
            (
                "From source to mouth {x} measures {v} kilometres.",
                "Surveyors found {x} to be {v} kilometres long.",
                "Boats that follow {x} to the end cover {v} kilometres.",
            ),
            ("How many kilometres long is {x}?", "How long is {x}, in kilometres?"),
        ),
        Fact(
            "mouth",
            Invented("Lake {}", ("anth", "ello", "uvia", "orr")),
            (
                "It ends in {v}, among reeds.",
                "After many bends {x} empties into {v}.",
                "The waters of {x} finally reach {v}.",
            ),
            ("Into which lake does {x} flow?", "In which lake does {x} end?"),
        ),
        Fact(
            "ferries",
            Number(11, 99, ("ferries",)),
            (
                "There are {v} ferries on {x}, all of them hauled by rope.",
                "The crossing of {x} is left to {v} ferries.",
                "People cross {x} on one of {v} ferries.",
            ),
            ("How many ferries cross {x}?", "What is the number of ferries on {x}?"),
        ),
        Fact(
            "spirit",
            Invented("Old {}", ("ibble", "ogg", "arrow", "usk")),
            (
                "Boatmen blame a spirit called {v} for every flood of {x}.",
                "A water spirit, {v}, is said to sleep under {x}.",
                "Children along {x} are warned of its spirit, {v}.",
            ),
            ("What is the spirit of {x} called?", "Which spirit is said to live in {x}?"),
        ),
    ),
)
MOUNTAIN = Kind(
    26,
    "the mountain",
    ("Mount {}", "{} Peak", "{} Fell"),
    ("agh", "orth", "usk", "ern", "ovan", "ith"),
    (
        Fact(
            "climber",
            Link("climber"),
            (
                "{x} was first climbed by {v}, against all advice.",
                "The first to stand on top of {x} was {v}.",
                "{v} made the first ascent of {x}, alone and in fog.",
            ),
            ("Who first climbed {x}?", "Who made the first ascent of {x}?"),
            "the first person to climb {x}",
        ),
        Fact(
            "climbed",
            Year(22, 50, maker="climber"),
            (
                "The first ascent of {x} dates from {v}.",
                "That first climb took place in the year {v}.",
                "Until {v} nobody had seen the view from {x}.",
            ),
            ("In what year was {x} first climbed?", "When was the first ascent of {x}?"),
        ),
        Fact(
            "height",
            Number(1100, 7900, ("metres", "m")),
            (
                "{x} is {v} metres high.",
                "The summit of {x} lies {v} metres above the sea.",
                "Its height has been measured as {v} metres.",
            ),
            ("How many metres high is {x}?", "How high is {x}, in metres?"),
        ),
        Fact(
            "cave",
            Invented("the {} Cave", ("ollow", "ast", "immer", "oke")),
            (
                "Halfway up {x} lies {v}, where climbers wait for the weather.",
                "A hollow known as {v} runs deep under {x}.",
                "Shepherds on {x} store their cheese in {v}.",
            ),
            ("Which cave lies in {x}?", "What is the cave in {x} called?"),
        ),
        Fact(
            "mineral",
            Pair(
                ("glassy", "soft", "yellow", "banded", "bitter", "milky", "veined", "brittle"),
                ("jasper", "chalk", "quartz"),
            ),
            (
                "The rock of {x} is mostly {v}.",
                "Masons come to {x} for its {v}.",
                "Seen up close, {x} is made of {v}.",
            ),
            ("What rock is {x} made of?", "Which kind of rock do masons quarry on {x}?"),
        ),
    ),
)
GUILD = Kind(
    30,
    "the guild",
    ("the {} Guild", "the {} Company", "the {} Brotherhood"),
    ("ard", "ence", "ull", "iron", "emark"),
    (
        Fact(
            "seat",
            Link("town"),
            (
                "{x} has its seat in {v}.",
                "The hall of {x} stands on the market square of {v}.",
                "{v} is home to {x}, one of the smaller guilds.",
            ),
            ("In which town does {x} have its seat?", "Where is the hall of {x}?"),
            "the town where {x} has its seat",
        ),
        Fact(
            "founder",
            Link("merchant"),
            (
                "It was the merchant {v} who founded {x}.",
                "{x} was founded by {v}, at first as a burial club.",
                "The members of {x} drink every spring to their founder, {v}.",
            ),
            ("Who founded {x}?", "Which merchant was the founder of {x}?"),
            "the founder of {x}",
        ),
        Fact(
            "founded",
            Year(24, 55, maker="founder"),
            (
                "The first rules of {x} were sealed in {v}.",
                "It received its seal in the year {v}.",
                "{x} goes back to the year {v}.",
            ),
            ("In what year was {x} set up?", "In what year was {x} established?"),
        ),
        Fact(
            "emblem",
            Pair(
                COLOURS,
                ("key", "ladle", "anchor", "thimble", "comb", "ladder", "spoon", "boot", "bucket", "needle", "drum"),
            ),
            (
                "A {v} is the emblem of {x}.",
                "Members of {x} wear a {v} on the sleeve.",
                "Above the door of {x} hangs a {v}, its emblem.",
            ),
            ("What is the emblem of {x}?", "Which emblem does {x} have?"),
        ),
        Fact(
            "members",
            Number(35, 990, ("members",)),
            (
                "{x} has never taken more than {v} members.",
                "The roll of {x} is closed at {v} members.",
                "By its rules {x} consists of {v} members.",
            ),
            ("How many members is {x} allowed to have?", "How many members are there in {x}?"),
        ),
    ),
)
SHIP = Kind(
    30,
    "the ship",
    ("the {} Maiden", "the Grace of {}", "the {} Star", "the Pride of {}"),
    ("enne", "ara", "olo", "isse", "umar"),
    (
        Fact(
            "yard",
            Link("town"),
            (
                "{x} was a ship built in {v}.",
                "Shipwrights from {v} built {x}, a broad and patient vessel.",
                "The ship called {x} left its yard in {v} with flags at every mast.",
            ),
            ("In which town was {x} built?", "Where did shipwrights build {x}?"),
            "the town where {x} was built",
        ),
        Fact(
            "captain",
            Link("sailor"),
            (
                "The captain of {x} was {v}.",
                "{x} sailed under {v}, a captain of few words.",
                "Command of {x} was given to {v}.",
            ),
            ("Who was the captain of {x}?", "Who commanded {x}?"),
            "the captain of {x}",
        ),
        Fact(
            "launched",
            Year(25, 55, maker="captain"),
            (
                "The launch of {x} took place in {v}.",
                "Launched in the year {v}, {x} spent its first winter in the ice.",
                "{x} first touched water in {v}.",
            ),
            ("In what year was {x} launched?", "When was {x} launched?"),
        ),
        Fact(
            "cargo",
            Pair(STATES, GOODS),
            (
                "It usually carried {v}, packed in straw.",
                "{x} traded in {v} for as long as it sailed.",
                "The holds of {x} smelled of its cargo, {v}.",
            ),
            ("What cargo did {x} carry?", "Which goods did {x} carry?"),
        ),
        Fact(
            "crew",
            Number(18, 340, ("hands", "sailors")),
            (
                "A crew of {v} hands was needed to sail {x}.",
                "{x} carried {v} hands and a cook.",
                "There were berths for {v} hands aboard {x}.",
            ),
            ("How many hands were in the crew of {x}?", "How many hands did {x} have berths for?"),
        ),
    ),
)
BOOK = Kind(
    30,
    "the novel",
    ("The Clocks of {}", "Letters to {}", "A Winter in {}", "The Daughters of {}", "The {} Papers", "Farewell to {}"),
    ("ovia", "essen", "umbra", "ondo", "iriel"),
    (
        Fact(
            "author",
            Link("writer"),
            (
                "{x} is a novel by {v}.",
                "The book called {x} was written by {v}, mostly at night.",
                "{v} wrote {x}, a novel in the form of a diary.",
            ),
            ("Who wrote {x}?", "Who is the author of {x}?"),
            "the author of {x}",
        ),
        Fact(
            "written",
            Year(25, 58, maker="author"),
            (
                "Copies of {x} were first sold in {v}.",
                "It came out in the year {v} and was soon forbidden.",
                "{x} was printed for the first time in {v}.",
            ),
            ("In what year was {x} published?", "When was {x} first printed?"),
        ),
        Fact(
            "pages",
            Number(80, 980, ("pages",)),
            (
                "The first printing of {x} has {v} pages.",
                "At {v} pages, {x} is seldom read to the end.",
                "{x} fills {v} pages.",
            ),
            ("How many pages does {x} have?", "What is the number of pages of {x}?"),
        ),
        Fact(
            "hero",
            Invented("{}", ("imund", "etta", "askin", "olph")),
            (
                "Its hero is an orphan by the name of {v}.",
                "{x} follows the wanderings of {v}, its hero.",
                "Readers of {x} either love or hate its hero, {v}.",
            ),
            ("What is the hero of {x} called?", "Who is the hero of {x}?"),
        ),
        Fact(
            "kept",
            Link("town"),
            (
                "The manuscript of {x} is kept in {v}.",
                "In {v} one can see the only manuscript of {x}.",
                "A chest in {v} holds the manuscript of {x}.",
            ),
            ("In which town is the manuscript of {x} kept?", "Where can the manuscript of {x} be seen?"),
            "the town where the manuscript of {x} is kept",
        ),
    ),
)
INVENTION = Kind(
    30,
    "the device",
    ("the {}scope", "the {}graph", "the {}meter", "the {} loom", "the {} pump", "the {} lamp"),
    ("alo", "ino", "ero", "uvo"),
    (
        Fact(
            "inventor",
            Link("engineer"),
            (
                "{x} is an invention of {v}.",
                "The engineer {v} invented {x} by accident.",
                "It was {v} who invented {x}, after eleven years of failures.",
            ),
            ("Who invented {x}?", "Who is the inventor of {x}?"),
            "the inventor of {x}",
        ),
        Fact(
            "invented",
            Year(22, 58, maker="inventor"),
            (
                "The drawings of {x} are dated {v}.",
                "A first model of {x} was ready in {v}.",
                "{x} worked for the first time in the year {v}.",
            ),
            ("In what year was {x} invented?", "What year is written on the drawings of {x}?"),
        ),
        Fact(
            "weight",
            Number(12, 780, ("kilograms", "kg", "kilos")),
            (
                "{x} weighs {v} kilograms.",
                "With its frame {x} comes to {v} kilograms.",
                "It takes a cart to move {x}, which weighs {v} kilograms.",
            ),
            ("How many kilograms does {x} weigh?", "How heavy is {x}, in kilograms?"),
        ),
        Fact(
            "heart",
            Pair(STUFFS, PARTS),
            (
                "The heart of {x} is a set of {v}.",
                "{x} works by means of {v}.",
                "What moves {x} is a row of {v}.",
            ),
            ("Which parts make {x} work?", "Which parts are at the heart of {x}?"),
        ),
        Fact(
            "shown",
            Link("town"),
            (
                "The public first saw {x} in {v}.",
                "{x} was shown for the first time in {v}, to polite applause.",
                "A fair in {v} was the first to show {x}.",
            ),
            ("In which town was {x} first shown?", "Where did the public first see {x}?"),
            "the town where {x} was first shown",
        ),
    ),
)
ANIMAL = Kind(
    28,
    "the animal",
    ("the {}", "the crested {}", "the lesser {}", "the {} shrew", "the {} newt"),
    ("aroo", "ipoo", "elk", "urru", "oquin"),
    (
        Fact(
            "finder",
            Link("naturalist"),
            (
                "{x} is an animal first described by {v}.",
                "The naturalist {v} was the first to describe {x}, a timid animal.",
                "We owe the first description of {x}, an animal of the night, to {v}.",
            ),
            ("Who first described {x}?", "Which naturalist gave the first description of {x}?"),
            "the naturalist who first described {x}",
        ),
        Fact(
            "found",
            Year(24, 58, maker="finder"),
            (
                "The description of {x} was printed in {v}.",
                "Nobody had reported {x} before {v}.",
                "{x} entered the lists of science in the year {v}.",
            ),
            ("In what year was {x} first reported?", "When was {x} first described?"),
        ),
        Fact(
            "home",
            Link("mountain"),
            (
                "{x} is found on {v} and nowhere else.",
                "All known burrows of {x} are on {v}.",
                "The only home of {x} is {v}.",
            ),
            ("On which mountain does {x} live?", "Where are the burrows of {x}?"),
            "the mountain where {x} lives",
        ),
        Fact(
            "food",
            Link("plant"),
            (
                "{x} feeds on {v}.",
                "Most of what {x} eats is {v}.",
                "In winter {x} lives on the roots of {v}.",
            ),
            ("On which plant does {x} feed?", "Which plant does {x} eat?"),
            "the plant that {x} eats",
        ),
        Fact(
            "weight",
            Number(60, 980, ("grams", "g")),
            (
                "Full-grown, {x} weighs {v} grams.",
                "When fully grown, {x} weighs {v} grams.",
                "The heaviest specimen of {x} reached {v} grams.",
            ),
            ("How many grams does {x} weigh?", "How heavy is {x}, in grams?"),
        ),
    ),
)
PLANT = Kind(
    30,
    "the plant",
    ("the {}", "the {} fern", "the {} thistle", "the creeping {}"),
    ("aba", "ilia", "ondra", "uret"),
    (
        Fact(
            "ground",
            Link("mountain"),
            (
                "{x} is a plant that grows on {v}.",
                "On the north face of {v} grows {x}, a plant with waxy leaves.",
                "Those who look for {x}, a plant of thin soils, find it on {v}.",
            ),
            ("On which mountain does {x} grow?", "Where does {x} grow?"),
            "the mountain where {x} grows",
        ),
        Fact(
            "height",
            Number(11, 390, ("centimetres", "cm")),
            (
                "In good years {x} reaches {v} centimetres.",
                "{x} grows {v} centimetres tall.",
                "The stem of {x} stops at {v} centimetres.",
            ),
            ("How tall is {x}, in centimetres?", "How many centimetres high is {x}?"),
        ),
        Fact(
            "healer",
            Link("healer"),
            (
                "The healer {v} was the first to use {x} against fever.",
                "Its use against fever was discovered by {v}.",
                "Since {v} tried it, {x} has been given against fever.",
            ),
            ("Who first used {x} against fever?", "Who discovered that {x} helps against fever?"),
            "the healer who first used {x} against fever",
        ),
        Fact(
            "petals",
            Number(13, 120, ("petals",)),
            (
                "Each flower of {x} has {v} petals.",
                "One counts {v} petals on every flower of {x}.",
                "The flowers of {x}, of {v} petals each, open at dusk.",
            ),
            ("How many petals does a flower of {x} have?", "What is the number of petals on each flower of {x}?"),
        ),
        Fact(
            "dye",
            Pair(
                ("dusky", "bright", "rusty", "milky", "deep", "smoky", "pale"),
                ("orange", "violet", "indigo", "ochre", "crimson"),
            ),
            (
                "Boiled for a day, {x} gives a {v} dye.",
                "Weavers take a {v} dye from {x}.",
                "The roots of {x} stain the hands a {v}, which dyers like.",
            ),
            ("What colour is the dye made from {x}?", "What is the colour of the dye taken from {x}?"),
        ),
    ),
)
DISH = Kind(
    26,
    "the dish",
    ("{}", "{} pie", "{} soup", "{} stew"),
    ("ashi", "olka", "umbo", "erini", "atch"),
    (
        Fact(
            "town",
            Link("town"),
            (
                "{x} is a dish from {v}.",
                "The dish called {x} comes from {v}.",
                "In {v}, where the dish comes from, {x} is eaten at weddings.",
            ),
            ("From which town does {x} come?", "Which town is the home of {x}?"),
            "the town from which {x} comes",
        ),
        Fact(
            "cook",
            Link("cook"),
            (
                "The cook {v} is said to have made {x} first.",
                "{x} was first served by {v}, to hide a burnt pan.",
                "Every book of recipes names {v} as the first cook of {x}.",
            ),
            ("Who first made {x}?", "Which cook was the first to serve {x}?"),
            "the cook who first made {x}",
        ),
        Fact(
            "spice",
            Link("plant"),
            (
                "Nothing gives {x} its taste but {v}.",
                "The taste of {x} comes from {v}, finely chopped.",
                "A handful of {v} goes into {x}.",
            ),
            ("Which plant gives {x} its taste?", "From which plant does the taste of {x} come?"),
            "the plant that gives {x} its taste",
        ),
        Fact(
            "minutes",
            Number(21, 390, ("minutes",)),
            (
                "{x} has to simmer for {v} minutes.",
                "It takes {v} minutes to cook {x}.",
                "After {v} minutes over the fire {x} is done.",
            ),
            ("For how many minutes is {x} cooked?", "How many minutes does it take to cook {x}?"),
        ),
        Fact(
            "bowl",
            Pair(COLOURS, ("bowls", "saucers", "shells", "baskets", "trays", "mugs", "tiles", "pots")),
            (
                "By custom {x} is served in {v}.",
                "Guests eat {x} out of {v}.",
                "Nobody would serve {x} in anything but {v}.",
            ),
            ("What is {x} served in?", "What do guests eat {x} from?"),
        ),
    ),
)
BRIDGE = Kind(
    24,
    "the bridge",
    ("the {} Bridge", "the {} Viaduct"),
    ("ingham", "oster", "ulle", "arden"),
    (
        Fact(
            "river",
            Link("river"),
            (
                "{x} crosses {v}.",
                "Travellers cross {v} by {x}, a crossing older than the road.",
                "Under the stones of {x} flows {v}.",
            ),
            ("Which river does {x} cross?", "Which river flows under {x}?"),
            "the river that {x} crosses",
        ),
        Fact(
            "architect",
            Link("architect"),
            (
                "The plans of {x} were drawn by {v}.",
                "{x} is the work of the architect {v}.",
                "To build {x}, {v} spent a fortune on oak.",
            ),
            ("Who drew the plans of {x}?", "Who was the architect of {x}?"),
            "the architect of {x}",
        ),
        Fact(
            "opened",
            Year(26, 58, maker="architect"),
            (
                "In {v} the first carts rolled over {x}.",
                "The opening of {x} fell in the year {v}.",
                "{x} was opened in {v}, in heavy rain.",
            ),
            ("In what year was {x} opened?", "When was {x} opened?"),
        ),
        Fact(
            "length",
            Number(45, 990, ("metres", "m")),
            (
                "From bank to bank {x} measures {v} metres.",
                "{x} is {v} metres long.",
                "It is {v} metres from one end of {x} to the other.",
            ),
            ("How many metres long is {x}?", "How long is {x}, in metres?"),
        ),
        Fact(
            "statue",
            Pair(
                ("kneeling", "laughing", "headless", "sleeping", "crowned", "winged"),
                ("miller", "giant", "nun", "piper", "fisherman"),
            ),
            (
                "A {v} in bronze guards the western end of {x}.",
                "The statue on {x} is that of a {v}.",
                "On {x} people touch the foot of a {v}, a statue, for luck.",
            ),
            ("What figure does the statue on {x} show?", "What does the statue on {x} depict?"),
        ),
    ),
)
SONG = Kind(
    26,
    "the song",
    ("The Ballad of {}", "Song of the {} Reapers", "{} Lullaby", "The {} March"),
    ("anta", "imber", "orelle", "usha"),
    (
        Fact(
            "composer",
            Link("composer"),
            (
                "{x} is a song composed by {v}.",
                "The tune and words of {x} are by {v}.",
                "{v} composed {x}, a song in four parts.",
            ),
            ("Who composed {x}?", "Who is the composer of {x}?"),
            "the composer of {x}",
        ),
        Fact(
            "composed",
            Year(22, 58, maker="composer"),
            (
                "{x} was heard for the first time in {v}.",
                "The oldest sheet of {x} bears the year {v}.",
                "Since {v} no wedding has passed without {x}.",
            ),
            ("In what year was {x} first heard?", "What year is written on the oldest sheet of {x}?"),
        ),
        Fact(
            "ship",
            Earlier("ship"),
            (
                "{x} tells of the last voyage of {v}.",
                "The words of {x} lament the loss of {v}.",
                "It is about {v} and a storm that {x} is sung.",
            ),
            ("Which ship is {x} about?", "Which ship does {x} sing of?"),
            "the ship that {x} is about",
        ),
        Fact(
            "verses",
            Number(13, 120, ("verses",)),
            (
                "All of {x} has {v} verses.",
                "Few singers know the {v} verses of {x}.",
                "To sing {x} is to sing {v} verses.",
            ),
            ("How many verses does {x} have?", "What is the number of verses of {x}?"),
        ),
        Fact(
            "sung",
            Link("guild"),
            (
                "It is sung at every meeting of {v}.",
                "The members of {v} have made {x} their own.",
                "{v} closes its meetings with {x}.",
            ),
            ("Which guild sings {x} at its meetings?", "Which guild has adopted {x} as its song?"),
            "the guild that sings {x}",
        ),
    ),
)
FESTIVAL = Kind(
    24,
    "the festival",
    ("the {} Fair", "the Feast of {}", "the {} Games"),
    ("amas", "etide", "oween", "iade"),
    (
        Fact(
            "town",
            Link("town"),
            (
                "{x} is held every year in {v}.",
                "Once a year {v} celebrates {x}.",
                "People travel far to {v} for {x}, a festival of three nights.",
            ),
            ("In which town is {x} held?", "Which town celebrates {x}?"),
            "the town where {x} is held",
        ),
        Fact(
            "honours",
            Link("healer"),
            (
                "{x} honours the healer {v}, who ended a plague.",
                "It is held in memory of {v}, a healer.",
                "The speeches at {x} praise {v}.",
            ),
            ("Whom does {x} honour?", "In whose memory is {x} held?"),
            "the healer whom {x} honours",
        ),
        Fact(
            "began",
            Year(75, 115, maker="honours"),
            (
                "{x} has been held since {v}.",
                "The first time that {x} was held was the year {v}.",
                "Records of {x} begin in {v}.",
            ),
            ("Since what year has {x} been held?", "In what year do the records of {x} begin?"),
        ),
        Fact(
            "prize",
            Pair(STATES, GOODS),
            (
                "Winners at {x} go home with a sack of {v}.",
                "The prize at {x} is a barrow of {v}.",
                "At {x} the fastest runner is given as much {v} as two can carry.",
            ),
            ("What is the prize at {x}?", "What do winners at {x} receive a load of?"),
        ),
        Fact(
            "dish",
            Link("dish"),
            (
                "Nobody leaves {x} without a plate of {v}.",
                "At {x} one eats {v}.",
                "The smell of {v} hangs over {x}.",
            ),
            ("Which dish is eaten at {x}?", "What do people eat at {x}?"),
            "the dish that is eaten at {x}",
        ),
    ),
)

KINDS = {
    "person": PERSON,
    "town": TOWN,
    "river": RIVER,
    "mountain": MOUNTAIN,
    "guild": GUILD,
    "ship": SHIP,
    "book": BOOK,
    "invention": INVENTION,
    "animal": ANIMAL,
    "plant": PLANT,
    "dish": DISH,
    "bridge": BRIDGE,
    "song": SONG,
    "festival": FESTIVAL,
}  # in the order of generation: people before what they create
