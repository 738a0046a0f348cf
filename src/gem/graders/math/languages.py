"""Words of other languages in English, so that the rules of this package apply to their questions and answers.

A word that is not in the table stays as it is; of Chinese and Japanese every character is then a word.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TABLE = """
: の, は, が, を, で, に, も, へ, だ, です, である, ます, か, ただし, 的, 了, 吗, 呢, 则, 共, 答, 同学, 個, となる,
になる, 解, 解得, 原式, 答え; the: der, die, das, den, dem, des, ein, eine, einen, einer, eines, le, la, les, un, une,
el, los, las, una, l', d'; its: sein, seine, ihr, ihre, sa, ses, su, sus, seu, sua, его, её, их; of: von, vom, de, del,
dos, das, der zahl, des nombres; is: ist, sind, beträgt, betragen, est, sont, vaut, es, é, mide, vale, равен, равна,
равно, равны, составляет, 是, 为; in: en, em, im, в, во; and: et, und, и, 及, 和, 与, 且, と, および; or: oder, ou, ó,
или, 或, または; therefore: also, daher, somit, donc, ainsi, luego, portanto, logo, поэтому, значит, итак, 所以, 因此,
故, よって, したがって; not: nicht, kein, keine, keinen, pas, aucun, aucune, ne, não, ningún, ninguna, не, нет, 不,
没有, 没, 非, 未, 否, ない, でない, ではない; no solution: keine lösung, pas de solution, aucune solution, sin
solución, sem solução, нет решений, нет корней, 无解, 无实数根, 解なし, 解はない, 没有解, 没有实数解, 无实根, 无实数解,
keine reelle lösung, нет действительных корней, no tiene solución, não tem solução; about: etwa, ungefähr, rund, circa,
environ, aproximadamente, unos, cerca, около, примерно, 约, 大约, 約, およそ; maybe: vielleicht, wohl, möglicherweise,
peut-être, quizás, talvez, возможно, может, 可能, 也许, 大概, たぶん, かもしれない, だろう; but: aber, mais, pero, mas,
но, 但, だが, であるが, しかし; different: 不同, различных; period: 周期, 最小正周期; real number: 实数, 実数; if:
wenn, falls, si, se, если, 若, 如果, のとき; for example: zum beispiel, beispielsweise, par exemple, por ejemplo, por
exemplo, например, 例如, 例えば; yes: ja, oui, sí, sim, да; no: nein, non; true: wahr, richtig, vrai, verdadero,
verdadeiro, верно, 正确, 正しい; false: faux, falso, ложь, 错误, falsch, неверно, 错; less: weniger, moins, menos,
меньше, 少; more: mehr, más, mais de, больше, 多; how many: wie viele, wieviele, combien, cuántos, cuántas, quantos,
quantas, сколько, 多少, 几, 何; what: welche, welcher, welches, quel, quelle, qué, cuál, qual, какой, какая, чему,
什么; how: wie, comment, cómo, как; find: finde, bestimme, berechne, calcule, calculer, calcula, calcular, déterminer,
determina, найдите, вычислите, 求, 求めよ, 求めなさい, 计算, ermittle, trouver, trouve, encuentra, halla, encontre,
求出; solve: löse, résoudre, resuelve, resolva, решите, 解方程, 解け; simplify: vereinfache, simplifier, simplifica,
simplifique, упростите, 化简, kürze, сократите, 约分; expand: multipliziere aus, développer, desarrolla, раскройте
скобки, 展開せよ; factor: faktorisiere, factoriser, factoriza, fatore, разложите на множители, 因式分解, 因数分解せよ,
因数分解, 分解因式; express: schreibe, écrire, escribe, escreva, запишите, выразите, 化为, 表せ, schreiben, écris,
écrivez; in decimal form: sous forme décimale, als dezimalzahl, en forma decimal, na forma decimal, в виде десятичной
дроби, 小数で, 用小数, como decimal, como número decimal, als dezimalbruch, en écriture décimale, 化成小数;
respectively: beziehungsweise, respectivement, respectivamente, соответственно, 分别, それぞれ; select all: 多选,
複数選択; percent: prozent, pourcent, pourcentage, porcentaje, porcentagem, процентах, процентов, проценты, 百分比,
百分之几; number: zahl, anzahl, nombre, número, число, 数; function: funktion, fonction, función, função, функция,
функции, функцию, 函数, 関数; equation: gleichung, équation, ecuación, equação, уравнение, уравнения, 方程, 原方程,
方程式; inequality: ungleichung, inéquation, inecuación, неравенство, 不等式; decimal: 小数, dezimalzahl, décimale;
condition: bedingung, condición, condição, условие, 条件; sufficient: hinreichend, suffisante, suficiente, достаточное,
充分, 十分; necessary: notwendig, nécessaire, necesaria, необходимое, 必要; perimeter: umfang, périmètre, perímetro,
периметр, 周长; area: fläche, flächeninhalt, aire, área, площадь, 面积, 面積, 表面積; volume: volumen, объём, 体积,
体積; speed: geschwindigkeit, vitesse, velocidad, velocidade, скорость, 速度, 速さ; length: länge, longueur, longitud,
длина, 长度, 長さ; average: durchschnittliche, moyenne, media, média, средняя, среднюю, 平均; angle: winkel, ángulo,
ângulo, угол, 角, 角度; vertex: scheitelpunkt, sommet, vértice, вершина, 顶点, 頂点; maximum: hochpunkt, máximo,
максимум, 最大值, 最大値, 极大值, 極大値; minimum: tiefpunkt, minimal, mínimo, минимум, 最小值, 最小値, 极小值, 極小値;
probability: wahrscheinlichkeit, probabilité, probabilidad, probabilidade, вероятность, 概率, 確率; dot product:
skalarprodukt, produit scalaire, producto escalar, produto escalar, скалярное произведение, 数量积, 内積; attained:
atteint, erreicht, alcanzado, достигается; second: sekunden, secondes, segundos, секунд, 秒; minute: minuten, minutos,
минут, минуты, мин, 分钟, 分; hour: stunden, stunde, heures, heure, horas, hora, часа, часов, час, ч, 小时, 時間, 时;
day: tage, tag, jours, jour, días, dias, дней, дня, день, 天, 日; week: wochen, semaines, semanas, недель, недели, 周;
month: monate, mois, meses, месяцев, месяца, 月, 个月; year: jahre, jahr, ans, años, anos, лет, года, год, 年, 岁;
degree: grad, degrés, grados, graus, градусов, градуса, 度; meter: mètres, metros, метров, метра, м, 米; km: км, 千米,
公里; cm: см, 厘米; mm: мм, 毫米; dm: дм, 分米; gram: г, 克; kg: кг, 千克, 公斤; tonne: тонн, 吨; liter: литров, л, 升;
ml: мл, 毫升; square cm: 平方厘米; square meter: 平方米; cubic cm: 立方厘米; cubic meter: 立方米; meter/second: м/с,
米/秒; yen: 元, 円; answer: lösung, antwort, réponse, solución, respuesta, solução, resposta, ответ, 答案; =: 等于,
等しい; as fraction: als bruch, sous forme de fraction, en forma de fracción, na forma de fração, в виде дроби, 分数で,
como fracción, como fração, en fracción, 化成分数; mixed number: nombre mixte, gemischte zahl, número mixto, número
misto, смешанное число, 带分数, 帯分数; scientific notation: notation scientifique, écriture scientifique,
wissenschaftliche schreibweise, wissenschaftlicher schreibweise, notación científica, notação científica, стандартном
виде, 科学记数法; increasing order: ordre croissant, aufsteigend, orden creciente, ordem crescente, порядке
возрастания, 从小到大, 小さい順; decreasing order: ordre décroissant, absteigend, orden decreciente, ordem decrescente,
порядке убывания, 从大到小, 大きい順; rationalize: 有理化, 有理化せよ; rounded: gerundet, runde, arrondi, arrondie,
arrondir, redondea, redondeado, arredonde, arredondado, округлите, 四舍五入, 四捨五入, 精确到; all real numbers: alle
reellen zahlen, tous les réels, todos los reales, todos os reais, все действительные числа, 全体实数, 一切实数,
すべての実数; infinitely many: unendlich viele, une infinité, infinitas, infinitos, бесконечно много, 无数, 无穷多;
empty set: leere menge, ensemble vide, conjunto vacío, conjunto vazio, пустое множество, 空集, 空集合; does not exist:
existiert nicht, n'existe pas, no existe, não existe, не существует, 不存在, 存在しない; rubles: рублей, рубля, рубль,
руб; give: donner, donne, donnez, gib, indique, indiquer, укажите, дайте; in lowest terms: irréductible, irreducible,
irredutível, несократимой дроби; fraction in lowest terms: gekürzter bruch, 最简分数, 既約分数, fraction irréductible;
fraction: bruch, fracción, fração, дробь, 分数; in order: 按顺序, 順に; polynomial: 多项式, 多項式
"""  # English: the same in other languages; …
_WORDS = {
    foreign: english
    for english, _, words in (row.partition(":") for row in _TABLE.replace("\n", " ").split("; "))
    for foreign in words.strip().split(", ")
} | {"，": ".", "？": "?", "。": "."}
_CJK = r"\u3040-\u30ff\u3400-\u9fff"
_ENGLISH = frozenset("the of what how find if and is are which with as to for by".split())  # noqa: SIM905


def _pattern(words: list[str]) -> re.Pattern[str]:
    ends = {word: "" if re.match(f"[{_CJK}']", word[-1]) else r"(?![^\W\d_²³])" for word in words}
    starts = {word: "" if re.match(f"[{_CJK}]", word) else r"(?<![^\W\d_]|\\)" for word in words}
    return re.compile("|".join(starts[w] + w + ends[w] for w in sorted(words, key=len, reverse=True)), re.IGNORECASE)


_OTHER = [word for word in _WORDS if re.match(rf"[{_CJK}\u0400-\u04ff]", word)]
_OTHERS, _ALL = _pattern(_OTHER), _pattern([word for word in _WORDS if word not in "，？。"])
_LETTERS = re.compile(r"[^\W\d_]+")
_LEFT = re.compile(f"[{_CJK}]")
_CLAUSE = re.compile(f"[？。]|，(?=[{_CJK}])")
_BASE = re.compile(r"(\d+)\s*(?:進法|进制)")
_CLOCK = re.compile(r"(午前|午後|上午|下午)?(\d{1,2})[时時点](\d{1,2})分")
_HALVES = {"午前": "am", "上午": "am", "午後": "pm", "下午": "pm"}


@lru_cache(maxsize=2048)
def _is_foreign(text: str) -> bool:
    words = set(_LETTERS.findall(text.casefold()))
    return not words & _ENGLISH and any(len(word) > 3 or not word.isascii() for word in words & _WORDS.keys())


@lru_cache(maxsize=4096)
def translated(text: str, question: str) -> str:
    """Return a question, or an answer to it, with the known words of other languages in English.

    Words in Latin letters are translated if the question, or else the answer, has none of English and a long one of
    another language.
    """
    is_foreign = _is_foreign(question or text)
    if text.isascii() and not is_foreign:
        return text
    text = _CLOCK.sub(lambda match: f"{match[2]}:{match[3]} {_HALVES.get(match[1], '')}", text)
    text = _BASE.sub(r" in base \1 ", text)
    if text == question:
        text = _CLAUSE.sub(lambda match: f"{_WORDS[match[0]]} ", text)

    def english(match: re.Match[str]) -> str:
        word = _WORDS[match[0].casefold()]
        return f" {word} " if _LEFT.match(match[0]) or match[0][-1] == "'" else word

    return _LEFT.sub(r" \g<0> ", (_ALL if is_foreign else _OTHERS).sub(english, text))
