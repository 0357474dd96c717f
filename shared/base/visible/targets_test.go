package visible

import (
	"slices"
	"strings"
	"testing"
)

// TestTargets contains texts with one address each, as found by mail programs (the list of linkify-it), URL parsers
// (WHATWG) and GitHub (cmark-gfm's extension and its own references).
func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"My http://example.com site":             "http://example.com",
		"http://user:pass@example.com:8080":      "http://user:pass@example.com:8080",
		"HTTP://GOOGLE.COM":                      "HTTP://GOOGLE.COM",
		"http://999":                             "http://999",
		"http://0x7f.1/":                         "http://0x7f.1/",
		"http://017700000001":                    "http://017700000001",
		"http://[::1]:80/x":                      "http://[::1]:80/x",
		"http://ev%69l.com/":                     "http://ev%69l.com/",
		"<made-up+scheme.x:y>":                   "made-up+scheme.x:y",
		"see <Foo:bar?x=1>.":                     "Foo:bar?x=1",
		"<matrix:r/room>":                        "matrix:r/room",
		"<localhost:5001/foo>":                   "localhost:5001/foo",
		">>example.com":                          "example.com",
		"//localhost":                            "//localhost",
		"My ftp://example.com site":              "ftp://example.com",
		"192.168.1.1/abc":                        "192.168.1.1/abc",
		"192.168.1.1:8080":                       "192.168.1.1:8080",
		"text:google.com":                        "google.com",
		"google.com.":                            "google.com",
		"s.l.o.w.io":                             "s.l.o.w.io",
		"a-b.com":                                "a-b.com",
		"GOOGLE.COM.":                            "GOOGLE.COM",
		"google.xxx is known":                    "google.xxx",
		"[example.com/foo_bar.jpg)]":             "example.com/foo_bar.jpg",
		"<domain.com/foo>.":                      "domain.com/foo",
		"mailto:foo@bar":                         "mailto:foo@bar",
		"➡.ws/䨹 example.com/䨹":                   "example.com/䨹",
		"президент.рф":                           "президент.рф",
		"xn--d1abbgf6aiiy.xn--p1ai":              "xn--d1abbgf6aiiy.xn--p1ai",
		"｜www.google.com/www.google.com/foo｜bar": "www.google.com/www.google.com/foo｜bar",
		"pay at paypa1-verify.com/login now":     "paypa1-verify.com/login",
		"paypa1-verify.com":                      "paypa1-verify.com",
		"_evil.com_ and":                         "evil.com",
		"evil.co.uk?x=1":                         "evil.co.uk?x=1",
		"me.github.io":                           "me.github.io",
		"docs.rs/serde":                          "docs.rs/serde",
		"evil.sh/x":                              "evil.sh/x",
		"login at allegro-lokalnie.pl now":       "allegro-lokalnie.pl",
		"bankofindia.in":                         "bankofindia.in",
		"tokopedia.id":                           "tokopedia.id",
		"BANK.CC":                                "BANK.CC",
		"bank-login.ml":                          "bank-login.ml",
		"evil.am":                                "evil.am",
		"www.evil.zip":                           "www.evil.zip",
		"login.evil.mov":                         "login.evil.mov",
		"evil.zip?x":                             "evil.zip?x",
		"203.0.113.7#x":                          "203.0.113.7#x",
		"http:host/x":                            "http:host/x",
		"https:/host/x":                          "https:/host/x",
		`http:\\host\x`:                          `http:\\host\x`,
		`https:\/host`:                           `https:\/host`,
		"http:////host":                          "http:////host",
		"ht\ttp://host/x":                        "ht\ttp://host/x",
		"http:\n//host/x":                        "http:\n//host/x",
		"java\u3000javascript:alert(1)":          "javascript:alert(1",
		"data:text/html,<b>":                     "data:text/html",
		`see \\server\share`:                     `\\server\share`,
		"evil。com/x":                             "evil.com/x",
		"ｅｖｉｌ．ｃｏｍ":                               "evil.com",
		"[run](/evil/malware/releases/x)":        "/evil/malware/releases/x",
		"[run](</evil/malware> \"t\")":           "/evil/malware",
		"[run](../../../evil/malware)":           "../../../evil/malware",
		"[run]\n\n[run]: /evil/malware":          "/evil/malware",
		"[run](evil.com)":                        "evil.com",
		"[run](bitcoin-cash:1abc)":               "bitcoin-cash:1abc",
		"[run](<ht\ttp:evil>)":                   "ht\ttp:evil",
		"[run](%2e%2e/%2E%2e/evil/malware)":      "%2e%2e/%2E%2e/evil/malware",
		"[run](.%2e/evil)":                       ".%2e/evil",
		"a\n- [run]: /evil/malware":              "/evil/malware",
		"a\n\n 10. [run]:\n/evil/malware":        "/evil/malware",
		"> * [run\nnow]: /evil/malware":          "/evil/malware",
		`[a\]b]: /evil/malware`:                  "/evil/malware",
		"search-ms:query=x&crumb=location:evil":  "search-ms:query=x&crumb=location:evil",
		"ms-word:ofe|u|x":                        "ms-word:ofe|u|x",
		"itms-services:?action=x":                "itms-services:?action=x",
		"bitcoin:1BoatSLRHtKN?amount=1":          "bitcoin:1BoatSLRHtKN?amount=1",
		"tg:resolve?domain=x":                    "tg:resolve?domain=x",
		"file:/srv/x":                            "file:/srv/x",
		`\\evil@SSL\share`:                       `\\evil@SSL\share`,
		"1.2.3.4?x=1":                            "1.2.3.4?x=1",
		"ⓔⓥⓘⓛ.ⓒⓞⓜ":                               "evil.com",
		"![](//evil/p.png)":                      "//evil/p.png",
		"<https://evil.com>":                     "https://evil.com",
		"git+ssh://host/x":                       "git+ssh://host/x",
		"www.commonmark.org/help.":               "www.commonmark.org/help",
		"xmpp:foo@bar.baz/txt":                   "xmpp:foo@bar.baz/txt",
		"play spotify:track:1":                   "spotify:track:1",
		"vscode-insiders:extension/x":            "vscode-insiders:extension/x",
		"geo:1,2":                                "geo:1,2",
		"maps:q=x":                               "maps:q=x",
		"ircs:evil":                              "ircs:evil",
		"snews:x":                                "snews:x",
		"smsto:+1900":                            "smsto:+1900",
		"facetime-audio:x":                       "facetime-audio:x",
		"web+mastodon:x":                         "web+mastodon:x",
		"monero:x":                               "monero:x",
	} {
		if got, _ := Targets(text); !slices.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTargetsNone contains texts that look like an address, but are a file, a number or a word.
func TestTargetsNone(t *testing.T) {
	for _, text := range append(strings.Fields(""+
		"main.go README.md docs/guide.md cmd/main.py e.g. i.e. 1.2.3 v1.2.3 1.2.3.4 1.2.3.4.5 3.pm 10.am "+
		"run.sh lib.rs index.html style.css package.json foo.tar.gz a.out Dr.Who Ph.D U.S. example.coma "+
		"foo.123 localhost and/or path:to:file.pm /path/to/file.pl image.jpg Makefile.am config.h.in "+
		"os.open user.name fmt.Println self.id app.run() main.rs:12 README.md#install ana@example.com "+
		"x[i](a:b) [x](a::b) [INFO] file:main.go -ms-transform:x @eve 3.14 12:30 5.5.2027 example.invalid "+
		"Makefile.in configure.ac main.cc my_test.cc libfoo.la user.id order.id there.In done.As x.id 1.2.3.4.in "+
		"evil.zip clip.mov build-all.sh data.py plan.md 203.0.113.7 10.0.0.1. "+
		"fileName.ext [x](docs/a.md) [x](#top) C:\\Users\\x"),
		"<dc:title>x</dc:title>", "<svg:g/>", "<x:y z>", "<a:>", "List<a::b>", "a<b:c", "<12:30>",
		"a sentence ends.\nAnother begins.", "yes... no", "at 3.30 p.m. sharp", "") {
		if got, rest := Targets(text); len(got) > 0 || rest != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}
