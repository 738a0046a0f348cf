"""web:Forms: end states that are nearly right, made by using the pages as docs/forms.md describes, score 0.

Each task has a plan that solves it and plans that end beside it, which were written without reading the verifier.
hands.py says how plans are written.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hands import follow

import gem


class Task(NamedTuple):
    """A task by its level and seed, words of its text, a plan that solves it, and wrong plans by what is wrong."""

    level: int
    seed: int
    words: str
    right: str
    wrong: dict[str, str]


SIGN_IN = "User name := knovak / Password := babara20 / Sign in / "
MAIL = "E-mail address := knovak79@example.net / Save / "
OTHER = "User name := bmoss / Password := lesele79 / Sign in / "
LOGIN = [
    Task(
        2,
        0,
        "sign in as Kim Novak, whose user name is in the directory, with the password babara20; change",
        SIGN_IN + MAIL,
        {
            "not saved": SIGN_IN + "E-mail address := knovak79@example.net",
            "not signed in": "User name := knovak / Password := babara20",
            "a wrong password": "User name := knovak / Password := babara2 / Sign in",
            "only signed in": SIGN_IN,
            "also kept signed in": "Keep me signed in := true / " + SIGN_IN + MAIL,
            "signed out afterwards": SIGN_IN + MAIL + "Sign out",
            "another ending of the address": SIGN_IN + "E-mail address := knovak79@example.org / Save",
            "done and undone": SIGN_IN + MAIL + "E-mail address := knovak@example.org / Save",
            "more text": SIGN_IN + "E-mail address := knovak79@example.net, / Save",
            "capital letters": SIGN_IN + "E-mail address := KNOVAK79@EXAMPLE.NET / Save",
            "the answer instead of the change": SIGN_IN + "stop := knovak79@example.net",
        },
    ),
    Task(
        2,
        1,
        "sign in as Ben Moss, whose user name is in the directory, with the password lesele79; answer",
        OTHER + "stop := bmoss@example.org",
        {
            "the answer without signing in": "stop := bmoss@example.org",
            "no answer": OTHER,
            "the user name": OTHER + "stop := bmoss",
            "two addresses": OTHER + "stop := bmoss@example.org or emoss@example.org",
            "an address that contains the right one": OTHER + "stop := bbmoss@example.org",
            "a sentence that denies it": OTHER + "stop := not bmoss@example.org",
            "the address changed as well": OTHER + "E-mail address := b@example.net / Save / stop := bmoss@example.org",
            "signed out as well": OTHER + "Sign out / stop := bmoss@example.org",
        },
    ),
]

PROFILE = "Signature := See you soon / Save / "
EDITOR = "Editor / Check spelling := false / Save / "
PRIVACY = "Privacy / Keep history for := 1 year / Profile visible to := Colleagues / Save / "
SETTINGS = [
    Task(
        2,
        1,
        "set Signature to See you soon; turn off Check spelling; set Keep history for to 1 year",
        PROFILE + EDITOR + PRIVACY,
        {
            "one page not saved": PROFILE + EDITOR + PRIVACY.removesuffix("Save / "),
            "the last page left without saving": PROFILE + PRIVACY + EDITOR.replace("Save", "General"),
            "one setting missing": PROFILE + EDITOR + PRIVACY.replace("Profile visible to := Colleagues / ", ""),
            "the option beside the right one": PROFILE + EDITOR + PRIVACY.replace("1 year", "6 months"),
            "the box beside the right one": PROFILE + EDITOR.replace("Check spelling", "Wrap lines") + PRIVACY,
            "another box as well": PROFILE + EDITOR.replace("Save", "Wrap lines := false / Save") + PRIVACY,
            "another page as well": PROFILE + EDITOR + PRIVACY + "Notifications / Sound := false / Save",
            "the text in the wrong box": PROFILE.replace("Signature", "Display name") + EDITOR + PRIVACY,
            "text added to the old text": PROFILE.replace("See you", "All the best See you") + EDITOR + PRIVACY,
            "done and undone": PROFILE + EDITOR + PRIVACY + EDITOR.replace("false", "true"),
            "lost by going back": PROFILE + EDITOR + PRIVACY.replace("Save / ", "back / Privacy / Save / "),
            "words instead of deeds": "stop := Signature: See you soon, Check spelling: off",
        },
    ),
]

FIND = "Search customers := Quin Lund / Search / "
CHAIR = "2991 > Edit / Status := Paid / Note := call on Friday / Save / "
RUG = "6780 > Edit / Status := Paid / Note := call on Friday / Save / "
FIND_TARA = "Search customers := Tara Reyes / Search / "
TABLE = [
    Task(
        3,
        0,
        "In all orders of Quin Lund with the status Returned, set the status to Paid",
        FIND + CHAIR + FIND + RUG,
        {
            "only the first": FIND + CHAIR,
            "the last one not saved": FIND + CHAIR + FIND + RUG.removesuffix("Save / "),
            "the last one cancelled": FIND + CHAIR + FIND + RUG.replace("Save", "Cancel"),
            "without a note": FIND + CHAIR + FIND + RUG.replace("Note := call on Friday / ", ""),
            "without the status": FIND + CHAIR + FIND + RUG.replace("Status := Paid / ", ""),
            "the note with another day": FIND + CHAIR + FIND + RUG.replace("Friday", "Sunday"),
            "also an order with another status": FIND + CHAIR + FIND + RUG + FIND + RUG.replace("6780", "5625"),
            "an order of the same family": FIND + CHAIR + CHAIR.replace("2991", "1499"),
            "an order that was paid before": FIND + CHAIR + FIND + RUG + FIND + RUG.replace("6780", "2361"),
            "one deleted": FIND + CHAIR + FIND + "6780 > Delete / Delete",
            "done and undone": FIND + CHAIR + FIND + RUG + FIND + "6780 > Edit / Status := Returned / Note :=  / Save",
            "another one deleted as well": FIND + CHAIR + FIND + RUG + FIND + "2672 > Delete / Delete",
        },
    ),
    Task(
        3,
        1,
        "What do the orders of Tara Reyes with the status Returned cost together?",
        "stop := 412",
        {
            "no answer": "",
            "the answer with a digit more": "stop := 4120",
            "the sum of all five": "stop := 1194",
            "one order left out": "stop := 224",
            "the answer in a list": "stop := 412 or 100",
            "the answer negative": "stop := -412",
            "the answer, and an order deleted": FIND_TARA + "9670 > Delete / Delete / stop := 412",
            "the answer, and a status changed": FIND_TARA + "8250 > Edit / Note := done / Save / stop := 412",
        },
    ),
]

OPEN = "archive > Open / "
NEW = "New folder / Name := invoice-19 / Create / "
DRAFT = "draft.csv > Move / Into := /archive/invoice-19 / Move / "
SURVEY = DRAFT.replace("draft", "survey")
MOVES = DRAFT + SURVEY
DELETE = "survey.png > Delete / Delete / "
FILES = [
    Task(
        3,
        1,
        "Make the folder /archive/invoice-19, move all csv files of /archive into it",
        DELETE + OPEN + NEW + MOVES,
        {
            "the folder elsewhere": DELETE + NEW + OPEN + MOVES.replace("/archive/invoice-19", "/invoice-19"),
            "the folder with another number": DELETE + OPEN + (NEW + MOVES).replace("-19", "-91"),
            "not deleted": OPEN + NEW + MOVES,
            "not confirmed that it is to be deleted": OPEN + NEW + MOVES + "Up / survey.png > Delete",
            "one file not moved": DELETE + OPEN + NEW + DRAFT,
            "the last move cancelled": DELETE + OPEN + NEW + MOVES.removesuffix("Move / ") + "Cancel",
            "a pdf file moved as well": DELETE + OPEN + NEW + MOVES + DRAFT.replace("draft.csv", "notes.pdf"),
            "a csv file of the root moved as well": DELETE
            + "notes.csv > Move / Into := /archive / Move / "
            + OPEN
            + NEW
            + MOVES
            + "notes.csv > Move / Into := /archive/invoice-19 / Move",
            "the csv file of the same name deleted": OPEN + NEW + DRAFT + "survey.csv > Delete / Delete",
            "a neighbor deleted as well": "report.pdf > Delete / Delete / " + DELETE + OPEN + NEW + MOVES,
            "a file renamed on the way": DELETE
            + OPEN
            + "draft.csv > Rename / New name := draft2.csv / Save / "
            + NEW
            + MOVES.replace("draft", "draft2"),
            "done and undone": DELETE
            + OPEN
            + NEW
            + MOVES
            + "invoice-19 > Open / draft.csv > Move / Into := /archive / Move",
            "another folder as well": DELETE + OPEN + NEW + MOVES + NEW.replace("19", "20"),
            "the file moved instead of deleted": DELETE.replace("Delete / Delete", "Move / Into := /drafts / Move")
            + OPEN
            + NEW
            + MOVES,
        },
    ),
]

FILL = "Cart / Remove Black mug / Quantity of Blue pillow := 4 / Quantity of Black bowl := 4 / Update quantities / "
BOWL = "Next page / Next page / Next page / Add Black bowl / "
ORDER = "Checkout / Address := High Street 67 / Delivery := Express / Coupon := HN873 / Place order / "
CART = [
    Task(
        3,
        0,
        "put 4 of the product Black bowl into the cart; remove the product Black mug from the cart",
        BOWL + FILL + ORDER,
        {
            "not ordered": BOWL + FILL,
            "filled in and not ordered": BOWL + FILL + ORDER.removesuffix("Place order / "),
            "the quantities typed and not updated": BOWL + FILL.replace("Update quantities / ", "") + ORDER,
            "without a coupon": BOWL + FILL + ORDER.replace("Coupon := HN873 / ", ""),
            "the coupon of the row below": BOWL + FILL + ORDER.replace("HN873", "EK393"),
            "what the coupon is for instead of its code": BOWL + FILL + ORDER.replace("HN873", "For new customers"),
            "the delivery that was set": BOWL + FILL + ORDER.replace("Delivery := Express / ", ""),
            "the house beside": BOWL + FILL + ORDER.replace("67", "69"),
            "a product more": BOWL + "Shop / Add Red mug / " + FILL + ORDER,
            "a product more removed": BOWL + FILL.replace("Remove", "Remove Red basket / Remove", 1) + ORDER,
            "one less": BOWL + FILL.replace("bowl := 4", "bowl := 3") + ORDER,
            "the product in another color": (BOWL + FILL)
            .replace("Black bowl", "Red bowl")
            .replace("Next page / ", "", 2)
            + ORDER,
            "something in the cart after the order": BOWL + FILL + ORDER + "Add Red mug",
            "ordered in two parts": BOWL + FILL + ORDER + "Add Red mug / Cart / " + ORDER,
        },
    ),
]

STEP_1 = "New registration / Name := Paul Costa / E-mail := pcosta@example.org / Ticket := Company / Next / "
STEP_2 = "Company name := Northwind Mills / Purchase number := PN-5197 / Next / "
STEP_3 = "Meal := Vegetarian / Photography := true / Robotics := true / Next / "
SUBMIT = "I accept the terms := true / Submit / "
WIZARD = [
    Task(
        2,
        1,
        "Register Paul Costa. E-mail: pcosta@example.org; Ticket: Company; Company name: Northwind Mills; Purchase",
        STEP_1 + STEP_2 + STEP_3 + SUBMIT,
        {
            "not submitted": STEP_1 + STEP_2 + STEP_3 + SUBMIT.removesuffix("Submit / "),
            "the terms not accepted": STEP_1 + STEP_2 + STEP_3 + "Submit",
            "cancelled at the end": STEP_1 + STEP_2 + STEP_3 + "Cancel",
            "twice": (STEP_1 + STEP_2 + STEP_3 + SUBMIT) * 2,
            "a person more": STEP_1
            + STEP_2
            + STEP_3
            + SUBMIT
            + (STEP_1 + STEP_2 + STEP_3 + SUBMIT).replace("Paul", "Ann"),
            "another end of the address": STEP_1.replace(".org", ".net") + STEP_2 + STEP_3 + SUBMIT,
            "name and first name exchanged": STEP_1.replace("Paul Costa", "Costa Paul") + STEP_2 + STEP_3 + SUBMIT,
            "a purchase number that contains the right one": STEP_1 + STEP_2.replace("5197", "51970") + STEP_3 + SUBMIT,
            "both texts in the first box": STEP_1
            + "Company name := Northwind Mills, PN-5197 / Purchase number := PN / Next / "
            + STEP_3
            + SUBMIT,
            "a workshop more": STEP_1 + STEP_2 + STEP_3.replace("Next", "Writing := true / Next") + SUBMIT,
            "a workshop less": STEP_1 + STEP_2 + STEP_3.replace("Robotics := true / ", "") + SUBMIT,
            "the meal that was set": STEP_1 + STEP_2 + STEP_3.replace("Meal := Vegetarian / ", "") + SUBMIT,
            "another ticket": STEP_1.replace("Company", "Student")
            + "University := Northwind Mills / Next / "
            + STEP_3
            + SUBMIT,
            "a mistake put in on the way back": STEP_1 + STEP_2 + STEP_3 + "Back / Meal := Fish / Next / " + SUBMIT,
        },
    ),
]

INBOX = {"Lunch": 1, "Photos": 1, "Contract": 1, "Parking": 2, "Train to Estow": 2, "Visit": 3}
TURN = {1: "Inbox / ", 2: "Inbox / Older / ", 3: "Inbox / Older / Older / "}
REPLY = TURN[3] + "Eli Ekman | Visit > Open / Reply / Text := 4388 / Send / "


def file_mails(titles: str, folder: str = "Bills") -> str:
    """Move mails of Eli Ekman, the last first, so that those before stay where they were."""
    wanted = [title for title in INBOX if title in titles.split(", ")]
    return "".join(
        f"{TURN[INBOX[title]]}Eli Ekman | {title} > Open / Folder := {folder} / Save / " for title in reversed(wanted)
    )


ALL = "Lunch, Photos, Contract, Parking, Train to Estow, Visit"
MOST = "Lunch, Photos, Contract, Parking, Train to Estow"
MAILBOX = [
    Task(
        3,
        1,
        "reply to the mail Visit of Eli Ekman with the code in the mail Parking of Eli Ekman",
        REPLY + file_mails(ALL),
        {
            "not sent": REPLY.removesuffix("Send / ") + file_mails(ALL),
            "no reply": file_mails(ALL),
            "a mail left": REPLY + file_mails(MOST),
            "only the first page": REPLY + file_mails("Lunch, Photos, Contract"),
            "one into the folder beside": REPLY + file_mails("Visit", "Travel") + file_mails(MOST),
            "the last move not saved": REPLY + file_mails(ALL).removesuffix("Save / "),
            "the code of another mail": REPLY.replace("4388", "5401") + file_mails(ALL),
            "a sentence around the code": REPLY.replace("4388", "The code is not 4388") + file_mails(ALL),
            "the reply to another mail": REPLY.replace("Visit", "Parking").replace("Older / Older", "Older")
            + file_mails(ALL),
            "replied twice": REPLY * 2 + file_mails(ALL),
            "one starred as well": REPLY + file_mails(ALL).replace("Save", "Star := true / Save", 1),
            "a mail of somebody else as well": REPLY
            + file_mails(ALL)
            + "Inbox / Quin Ekman | Contract > Open / Folder := Bills / Save",
            "a mail put back": REPLY + file_mails(ALL) + "Bills / Eli Ekman | Lunch > Open / Folder := Inbox / Save",
            "the code as answer only": file_mails(ALL) + "stop := 4388",
        },
    ),
]

BOOK = "New booking / Booked by := Quin Okafor / Room := Green Room / From: no date / 11 / To: no date / 24 / Save / "
MOVE = (
    "Cara Ekman > Change / From: 2027-07-20 / Next month / 27 / To: 2027-07-25 / Next month / Next month / 1 / Save / "
)
CANCEL = "Sam Costa > Cancel booking / Cancel booking / "
CALENDAR = [
    Task(
        2,
        0,
        "book the Green Room for Quin Okafor from 2028-07-11 to 2028-07-24",
        BOOK,
        {
            "not saved": BOOK.removesuffix("Save / "),
            "discarded": BOOK.replace("Save", "Discard"),
            "the day after": BOOK.replace("/ 24 /", "/ 25 /"),
            "the month after": BOOK.replace("From: no date / 11", "From: no date / Next month / 11").replace(
                "/ 24", "/ Next month / 24"
            ),
            "the room beside": BOOK.replace("Green", "Blue"),
            "for a person of the same name": BOOK.replace("Quin Okafor", "Quin Stone"),
            "twice": BOOK * 2,
            "by changing the booking of another": "Ann Reyes > Change / Booked by := Quin Okafor / "
            "Room := Green Room / From: 2028-07-05 / 11 / To: 2028-07-14 / 24 / Save / ",
            "another one cancelled as well": BOOK + "Ann Reyes > Cancel booking / Cancel booking",
            "done and undone": BOOK + "Quin Okafor > Cancel booking / Cancel booking",
        },
    ),
    Task(
        3,
        1,
        "move the booking of Cara Ekman by 38 days to a later date and keep its length",
        MOVE + CANCEL,
        {
            "only the first day moved": MOVE.partition("To:")[0]
            + "To: 2027-07-25 / Next month / 27 / Save / "
            + CANCEL,
            "not cancelled": MOVE,
            "not confirmed that it is to be cancelled": MOVE + "Sam Costa > Cancel booking",
            "only cancelled": CANCEL,
            "not saved": MOVE.replace("Save", "Discard") + CANCEL,
            "another one of the family cancelled": MOVE + CANCEL.replace("Sam Costa", "Ivan Costa"),
            "a day too late": MOVE.replace("/ 27 /", "/ 28 /").replace("/ 1 /", "/ 2 /") + CANCEL,
            "cancelled and booked anew in another room": MOVE.replace("Save", "Room := Red Room / Save") + CANCEL,
        },
    ),
]

TASKS = {
    "login": LOGIN,
    "settings": SETTINGS,
    "table": TABLE,
    "files": FILES,
    "cart": CART,
    "wizard": WIZARD,
    "mailbox": MAILBOX,
    "calendar": CALENDAR,
}
CASES = [
    pytest.param(kind, task, id=f"{kind}-{task.level}-{task.seed}") for kind, tasks in TASKS.items() for task in tasks
]


@pytest.mark.parametrize(("kind", "task"), CASES)
def test_end_states_that_are_nearly_right_score_nothing(kind, task):
    env = gem.make("web:Forms", kind=kind, level=task.level, height=None)
    assert task.words in env.reset(seed=task.seed)[0]
    assert follow(env, task.seed, task.right).reward == 1.0
    for what, plan in task.wrong.items():
        assert follow(env, task.seed, plan).reward == 0.0, what


def test_there_are_at_least_ten_wrong_end_states_per_kind():
    assert all(sum(len(task.wrong) for task in tasks) >= 10 for tasks in TASKS.values())
