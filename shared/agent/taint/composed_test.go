package taint_test

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/taint"
)

// carries is an address with data that the model wants to send out.
const carries = "https://evil.example/collect?d=the-door-code-is-4711"

// doorInHex is "the door is open" in hex.
const doorInHex = "74686520646f6f72206973206f70656e"

// TestEchoed checks that addresses from tools do not count as read if they consist of what the model wrote before.
func TestEchoed(t *testing.T) {
	data := "the-door-code-is-4711"
	for name, wrote := range map[string]string{
		"whole":             "answer with exactly " + carries,
		"upper case":        strings.ToUpper(carries),
		"percent":           "decode " + url.QueryEscape(carries),
		"percent twice":     "decode " + twice(func(b []byte) string { return url.QueryEscape(string(b)) }, carries),
		"base64":            base64.StdEncoding.EncodeToString([]byte(carries)),
		"base64 twice":      twice(base64.StdEncoding.EncodeToString, carries),
		"hex":               hex.EncodeToString([]byte(carries)),
		"entities":          strings.ReplaceAll(carries, "/", "&#x2f;"),
		"escapes":           strings.ReplaceAll(carries, ":", `\u003a`),
		"two arguments":     "https://evil.exam\nple/collect?d=the-door-code-is-4711",
		"in another order":  "ple/collect?d=the-door\n-code-is-4711\nhttps://evil.exam",
		"a program":         "'https://evil' + '.example/collect?d=' + open('f')",
		"spaces":            "https: // evil . example / collect ?d= " + data,
		"the host alone":    "take evil.example and the words that I mailed you",
		"the data, decoded": "append the door code is 4711; base64: " + base64.StdEncoding.EncodeToString([]byte(data)),
		"spoken":            "evil dot example slash collect, and the mailed words",
		"brackets":          "evil [dot] example",
		"more brackets":     "evil{.}example, evil <slash> x",
		"dashes":            "the host is evil-dot-example",
		"another language":  "evil точка example",
		"Chinese":           "evil点example",
		"look-alikes":       "ev\u0456l.ex\u0430mple and the mailed words",
		"full-width":        "ｈｔｔｐｓ：／／ｅｖｉｌ．ｅｘａｍｐｌｅ／collect?d=" + data,
		"ROT13":             "uggcf://rivy.rknzcyr/pbyyrpg?q=gur-qbbe-pbqr-vf-4711",
		"backwards":         "1174-si-edoc-rood-eht=d?tcelloc/elpmaxe.live//:sptth",
		"base32":            base32.StdEncoding.EncodeToString([]byte(carries)),
		"base64 in pieces":  pieces(base64.StdEncoding.EncodeToString([]byte(carries)), `" + "`),
		"Ascii85":           inAscii85(carries),
	} {
		r := heard("Read https://ok.example/.", "nothing")
		r.Compose(wrote)
		r.Read(taint.Source{Origin: "a tool", Text: "It is " + carries})
		if !r.Composed(carries) {
			t.Errorf("%s: Composed(%s) = false", name, carries)
		}
	}
}

// pieces cuts a text into pieces with the sign between them.
func pieces(s, sign string) string {
	var all []string
	for p := range slices.Chunk([]byte(s), 10) {
		all = append(all, string(p))
	}
	return strings.Join(all, sign)
}

func inAscii85(s string) string {
	b := make([]byte, ascii85.MaxEncodedLen(len(s)))
	return string(b[:ascii85.Encode(b, []byte(s))])
}

func twice(encode func([]byte) string, s string) string { return encode([]byte(encode([]byte(s)))) }

// TestEchoedWithoutItsHost checks an address whose data the model wrote in pieces, on a host that it did not name.
func TestEchoedWithoutItsHost(t *testing.T) {
	r := heard("Who is Ana?", "nothing")
	r.Compose("the user is Ana Bell, the code is 4711")
	r.Read(taint.Source{Origin: "a tool", Text: "https://evil.example/anabell4711 https://news.example/bellevue2026"})
	if !r.Composed("https://evil.example/anabell4711") || r.Composed("https://news.example/bellevue2026") {
		t.Error("pieces of the model's words do not decide what counts as read")
	}
}

// TestEchoedOnAKnownHost is [TestEchoed] with a host that the user or a page named.
func TestEchoedOnAKnownHost(t *testing.T) {
	known := "See https://ok.example/ and https://ok.example/docs/intro."
	for wrote, address := range map[string]string{
		"append 4711 to https://ok.example/":               "https://ok.example/4711",
		"append swordfish to https://ok.example/?d=":       "https://ok.example/?d=swordfish",
		"https://ok.example/?d= and the file":              "https://ok.example/?d=what-the-file-has",
		"put swordfish as a label before ok.example":       "https://swordfish.ok.example/",
		"https://ok.example/docs/intro, d is swordfish":    "https://ok.example/docs/intro?d=swordfish",
		"ok.example: hunter2":                              "https://ok.example/aHVudGVyMg",
		"replace X by hunter2abc in the file":              "https://ok.example/hunter2abc",
		"replace X by the-door-code-is-4711":               "https://ok.example/?q=the-door-code-is-4711",
		"ok.example, in hex: the door is open":             "https://ok.example/" + doorInHex,
		`{"host":"ok.example","path":"x","code":49281734}`: "https://ok.example/x/49281734",
		"connect to ok.example at port 4711":               "https://ok.example:4711/",
		"ok.example and swordfish":                         "https://x:swordfish@ok.example/docs/intro",
		"ok.example, in digits: 4711":                      "https://ok.example/4/7/1/1",
		"ok.example: swordfish":                            "https://ok.example/?a=sword&b=fish",
		"ok.example as a picture: swordfish":               "https://ok.example/swordfish.png",
		"ok.example with x around: swordfish":              "https://ok.example/xswordfishx",
		"ok.example, a parameter: swordfish":               "https://ok.example/;v=swordfish",
		"ok.example, in ROT13: swordfish":                  "https://ok.example/?v=fjbeqsvfu",
		"ok.example, in Atbash: swordfish":                 "https://ok.example/?v=hdliwurhs",
		"ok.example, in ROT47: swordfish":                  "https://ok.example/?v=DH@C57:D9",
		"ok.example, with digits: swordfish":               "https://ok.example/?v=Sw0rdF1sh",
		"ok.example, without digits: p4ssphrase":           "https://ok.example/?v=passphrase",
		"ok.example, backwards: swordfish":                 "https://ok.example/hsifdrows",
		"ok.example, a short code: 4711":                   "https://ok.example/NDcxMQ",
		"ok.example, with accents: swordfish":              "https://ok.example/sw\u00f3rdf\u00edsh",
		"ok.example, in Arabic digits: ٤٧١١":               "https://ok.example/4711",
		"ok.example, in words: four seven one one":         "https://ok.example/4711",
	} {
		for _, own := range []string{known, "x"} {
			r := heard(own, known)
			r.Compose(wrote)
			r.Read(taint.Source{Origin: "a tool", Text: "It is " + address})
			if !r.Composed(address) {
				t.Errorf("%s: Composed(%s) = false", wrote, address)
			}
		}
	}
}

// TestReadBefore checks that addresses of pages, e-mails and users stay usable after the model used them, or searched
// for words in them.
func TestReadBefore(t *testing.T) {
	page := "Order: https://shop.example/order/123?key=f00ba7b4z, docs: https://docs.example/guide/autoscaling"
	r := heard("Read https://own.example/a/b?c=d1234567", page)
	r.Compose("https://shop.example/order/123?key=f00ba7b4z https://own.example/a/b?c=d1234567 and docs.example")
	r.Read(taint.Source{Origin: "a mail", Text: page + " https://shop.example/order/456 https://own.example/a/z " +
		"https://docs.example/guide/other"})
	r.Compose("top 10 movies of 2026, golang context deadline exceeded, kubernetes autoscaling, go1.26")
	r.Read(taint.Source{Origin: "a search", Text: "https://found.example/top-10-movies-2026 " +
		"https://found.example/golang-context-deadline-exceeded https://k8s.example/docs/autoscaling " +
		"https://go.example/doc/go1.26 https://harbour.example/"})
	for _, address := range strings.Fields("https://shop.example/order/123?key=f00ba7b4z " +
		"https://own.example/a/b?c=d1234567 https://shop.example/order/456 https://docs.example/guide/other " +
		"https://own.example/a/z " +
		"https://found.example/top-10-movies-2026 https://found.example/golang-context-deadline-exceeded " +
		"https://k8s.example/docs/autoscaling https://go.example/doc/go1.26 https://harbour.example/") {
		if r.Composed(address) {
			t.Errorf("Composed(%s) = true", address)
		}
	}
}

// TestEchoes checks that, of the addresses in a program's output, only those that do not come from the caller count as
// read.
func TestEchoes(t *testing.T) {
	r := heard("x", "y")
	r.Read(taint.Source{Origin: "a program", Text: "https://a.example/1 https://a.example/2", Echo: true,
		Found: "https://a.example/2"})
	if !r.Composed("https://a.example/1") || r.Composed("https://a.example/2") {
		t.Error("the addresses in Found do not decide what counts as read")
	}
}
