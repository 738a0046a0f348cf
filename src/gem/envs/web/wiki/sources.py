"""All sources of pages in one module, as published."""

from gem.envs.web.wiki.kiwix import KiwixWikiTrawler
from gem.envs.web.wiki.mediawiki import MediaWikiTrawler
from gem.envs.web.wiki.pages import BaseWikiTrawler

__all__ = ["BaseWikiTrawler", "KiwixWikiTrawler", "MediaWikiTrawler"]
