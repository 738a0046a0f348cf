"""Sources of pages for WikiGame under their published path."""

from gem.envs.wiki.kiwix import KiwixWikiTrawler
from gem.envs.wiki.mediawiki import MediaWikiTrawler
from gem.envs.wiki.pages import BaseWikiTrawler

__all__ = ["BaseWikiTrawler", "KiwixWikiTrawler", "MediaWikiTrawler"]
