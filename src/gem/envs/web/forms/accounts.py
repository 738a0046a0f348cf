"""Pages of an account: signing in with a staff directory, and settings in several tabs."""

from __future__ import annotations

import copy
import random

from gem.envs.invented import people, user_name
from gem.envs.web.forms.site import Data, FormTask, Site, View, listed
from gem.envs.web.forms.widgets import (
    OFF,
    ON,
    Element,
    button,
    checkbox,
    combobox,
    heading,
    link,
    page,
    row,
    table,
    text,
    textbox,
)

_SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"]


def _password(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=3)) + str(rng.randint(10, 99))


class LoginSite(Site):
    """Sign in, change e-mail address and password, sign out.

    Level 1: sign in with a given user name. 2: the user name is in the directory, and "Keep me signed in" is wanted or
    the e-mail address has to be changed. 3: also change the password and sign out; or report an e-mail address.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        names = people(rng, 4 + 3 * level)
        accounts: Data = {}
        for name in names:
            user = user_name(name)
            user = user if user not in accounts else f"{user}{rng.randint(2, 9)}{len(accounts)}"
            accounts[user] = {"name": name, "password": _password(rng), "email": f"{user}@example.org"}
        data: Data = {"signed_in": "", "keep": False, "accounts": accounts}
        goal = copy.deepcopy(data)
        user = rng.choice(sorted(accounts))
        name, password = accounts[user]["name"], accounts[user]["password"]
        plan: list[tuple[str, ...]] = [("fill", "user", user), ("fill", "password", password), ("click", "sign-in")]
        goal["signed_in"], answer = user, None
        if level == 1:
            orders = [f"sign in as the user {user} with the password {password}"]
        else:
            plan = [("click", "directory"), ("click", "home"), *plan]
            orders = [f"sign in as {name}, whose user name is in the directory, with the password {password}"]
        email = f"{user}{rng.randint(10, 99)}@example.net"
        if level == 2 and rng.random() < 0.5:
            orders.append("tick Keep me signed in")
            goal["keep"] = True
            plan.insert(-1, ("check", "keep"))
        elif level > 1 and rng.random() < 0.6:
            orders.append(f"change the e-mail address to {email}")
            goal["accounts"][user]["email"] = email
            plan += [("fill", "email", email), ("click", "save")]
        elif level > 1:
            orders.append("answer with the e-mail address of the account")
            answer = accounts[user]["email"]
        if level == 3:
            new = _password(rng)
            orders += [f"change the password to {new}", "sign out"]
            goal["accounts"][user]["password"], goal["signed_in"] = new, ""
            fields = [("old", password), ("new", new), ("again", new)]
            plan += [("click", "password"), *(("fill", *field) for field in fields), ("click", "change")]
            plan += [("click", "account"), ("click", "sign-out")]
        instruction = f"Do all of this: {listed(orders)}."
        return FormTask(instruction=instruction, home="sign-in", data=data, goal=goal, answer=answer, plan=tuple(plan))

    def page(self, data: Data, view: View) -> Element:
        if view.address == "directory":
            rows = (row([account["name"], user]) for user, account in data["accounts"].items())
            return page("Directory", link("Sign in", "home"), table("Name | User name", *rows))
        if view.address == "sign-in" or not data["signed_in"]:
            return page(
                "Sign in",
                link("Directory", "directory"),
                textbox("User name", "user", view.get("user"), "sign-in"),
                textbox("Password", "password", view.get("password"), "sign-in"),
                checkbox("Keep me signed in", "keep", view.get("keep", OFF)),
                button("Sign in", "sign-in"),
            )
        account = data["accounts"][data["signed_in"]]
        if view.address == "password":
            names = {"old": "Current password", "new": "New password", "again": "Repeat new password"}
            boxes = [textbox(name, key, view.get(key), "change") for key, name in names.items()]
            return page("Change password", link("Account", "account"), *boxes, button("Change password", "change"))
        return page(
            "Account",
            text(f"Signed in as {account['name']}"),
            textbox("E-mail address", "email", view.get("email", account["email"]), "save"),
            button("Save", "save"),
            link("Change password", "password"),
            button("Sign out", "sign-out"),
        )

    def press(self, data: Data, view: View, key: str) -> View:
        account = data["accounts"].get(data["signed_in"])
        if key == "sign-in":
            found = data["accounts"].get(view.get("user"))
            if found is None or found["password"] != view.get("password"):
                return view.say("Wrong user name or password.")
            data["signed_in"], data["keep"] = view.get("user"), view.checked("keep")
            return view.go("account")
        if key == "sign-out":
            data["signed_in"] = ""
            return view.go("sign-in", "You have signed out.")
        if key == "save":
            account["email"] = view.get("email", account["email"])
            return view.go("account", "Saved.")
        if key == "change":
            if view.get("old") != account["password"] or not view.get("new"):
                return view.say("The current password is wrong, or the new one is empty.")
            if view.get("new") != view.get("again"):
                return view.say("The new passwords differ.")
            account["password"] = view.get("new")
            return view.go("password", "The password has been changed.")
        return view.go("sign-in" if key == "home" else key)


_SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {  # tab → setting → options; none for a checkbox
    "General": {
        "Language": ("English", "German", "Spanish", "Japanese"),
        "Time zone": ("UTC-5", "UTC-3", "UTC", "UTC+1", "UTC+2", "UTC+5", "UTC+9"),
        "Start week on Monday": (),
        "Compact lists": (),
    },
    "Notifications": {
        "Digest": ("Never", "Daily", "Weekly", "Monthly"),
        "Mail about comments": (),
        "Mail about mentions": (),
        "Mail about invitations": (),
        "Sound": (),
    },
    "Privacy": {
        "Profile visible to": ("Everyone", "Colleagues", "Nobody"),
        "Show e-mail address": (),
        "Show online status": (),
        "Keep history for": ("1 month", "6 months", "1 year"),
    },
    "Editor": {
        "Font size": ("Small", "Medium", "Large"),
        "Check spelling": (),
        "Wrap lines": (),
        "Indent with": ("Tabs", "2 spaces", "4 spaces"),
    },
}
_CITIES = ("Aldor", "Brenna", "Corvale", "Dunmere", "Estow", "Farrow")
_SIGNATURE = ("Best wishes", "Kind regards", "Thanks", "See you soon", "All the best")


class SettingsSite(Site):
    """Settings in tabs, each with its own button Save. Changes that are not saved are lost with the tab.

    Level 1: one setting. 2: three settings, and the signature. 3: five, and the signature; the time zone is that of an
    office that another page lists.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        data: Data = {
            tab: {name: rng.choice(options) if options else rng.random() < 0.5 for name, options in settings.items()}
            for tab, settings in _SETTINGS.items()
        }
        data["Profile"] = {"Display name": people(rng, 1)[0], "Signature": rng.choice(_SIGNATURE)}
        offices = {city: rng.choice(_SETTINGS["General"]["Time zone"]) for city in _CITIES}
        data["Offices"] = offices
        goal = copy.deepcopy(data)
        orders: list[str] = []
        plan: list[tuple[str, ...]] = []
        places = [(tab, name) for tab, names in _SETTINGS.items() for name in names if name != "Time zone"]
        chosen = rng.sample(places, {1: 1, 2: 3, 3: 4}[level])
        city = rng.choice([c for c in _CITIES if offices[c] != data["General"]["Time zone"]] or list(_CITIES))
        if level == 3:
            chosen.append(("General", "Time zone"))
            plan += [("click", "tab/Offices")]
        if level > 1:
            chosen.append(("Profile", "Signature"))
        for tab in dict.fromkeys(tab for tab, _ in chosen):
            plan.append(("click", f"tab/{tab}"))
            for name in (name for other, name in chosen if other == tab):
                old, options = data[tab][name], _SETTINGS.get(tab, {}).get(name, _SIGNATURE)
                if name == "Time zone":
                    goal[tab][name] = offices[city]
                    orders.append(f"set Time zone to that of the office in {city}")
                    plan.append(("select", name, offices[city]))
                elif options:
                    new = rng.choice([option for option in options if option != old])
                    goal[tab][name] = new
                    orders.append(f"set {name} to {new}")
                    plan.append(("fill" if tab == "Profile" else "select", name, new))
                else:
                    goal[tab][name] = not old
                    orders.append(f"turn {'off' if old else 'on'} {name}")
                    plan.append(("click", name))
            plan.append(("click", "save"))
        rng.shuffle(orders)
        instruction = f"Change these settings: {listed(orders)}."
        return FormTask(instruction=instruction, home="Profile", data=data, goal=goal, plan=tuple(plan))

    def page(self, data: Data, view: View) -> Element:
        tabs = [link(tab, f"tab/{tab}") for tab in ("Profile", *_SETTINGS, "Offices")]
        saved = data[view.address]
        if view.address == "Offices":
            rows = (row([city, zone]) for city, zone in saved.items())
            return page("Settings", *tabs, heading("Offices"), table("City | Time zone", *rows))
        fields = []
        for name, value in saved.items():
            if view.address == "Profile":
                fields.append(textbox(name, name, view.get(name, value), "save"))
            elif options := _SETTINGS[view.address][name]:
                fields.append(combobox(name, name, view.get(name, value), options))
            else:
                fields.append(checkbox(name, name, view.get(name, ON if value else OFF)))
        return page("Settings", *tabs, heading(view.address), *fields, button("Save", "save"))

    def press(self, data: Data, view: View, key: str) -> View:
        if key != "save":
            return view.go(key.removeprefix("tab/"))
        for name, value in view.fields.items():
            saved = data[view.address]
            saved[name] = value == ON if isinstance(saved[name], bool) else value
        return view.go(view.address, "Saved.")
