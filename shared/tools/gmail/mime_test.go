package gmail

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// parsed is a message as the standard library parses it, independently of the code that built it.
type parsed struct {
	header      mail.Header
	to, cc, bcc []string
	subject     string
	kinds       []string
	bodies      []string
}

func parse(t *testing.T, raw []byte) (p parsed) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	p.header = m.Header
	for name, into := range map[string]*[]string{"To": &p.to, "Cc": &p.cc, "Bcc": &p.bcc} {
		if m.Header.Get(name) == "" {
			continue
		}
		list, err := m.Header.AddressList(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			*into = append(*into, a.Address)
		}
	}
	if p.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind string, encoding string, r io.Reader) {
		if encoding == "quoted-printable" {
			r = quotedprintable.NewReader(r)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		p.kinds, p.bodies = append(p.kinds, kind), append(p.bodies, strings.ReplaceAll(string(b), "\r\n", "\n"))
	}
	if kind != "multipart/alternative" {
		add(kind, m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return p
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextPart() // it decodes quoted-printable itself
		if err == io.EOF {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		add(kind, "", part)
	}
}

func mustBuild(t *testing.T, a Args) []byte {
	t.Helper()
	raw, err := build(a, tool.Call{ActionID: "action_1"})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMIMEReadsBack(t *testing.T) {
	long := strings.Repeat("a", 64) + "@" + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + ".example"
	for name, a := range map[string]Args{
		"plain": {To: []string{"a@example.com"}, Subject: "s", Body: "b"},
		"everybody": {To: []string{"a@example.com", "b@example.com"}, Cc: []string{"c@example.com"},
			Bcc: []string{"d@example.com"}, Subject: "s", Body: "b"},
		"20 long addresses": {To: slices.Repeat([]string{long}, 20), Subject: "s", Body: "b"},
		"an encoded word is text": {To: []string{"a@example.com"}, Subject: "=?utf-8?q?x=0D=0ABcc:_evil=40x.com?=",
			Body: "b"},
		"half an encoded word": {To: []string{"a@example.com"}, Subject: "=?x", Body: "b"},
		"a long subject":       {To: []string{"a@example.com"}, Subject: strings.Repeat("s", 998), Body: "b"},
		"a long subject of words": {To: []string{"a@example.com"},
			Subject: strings.TrimSpace(strings.Repeat("word ", 199)), Body: "b"},
		"letters of four octets": {To: []string{"a@example.com"}, Subject: strings.Repeat("😀", 200), Body: "😀"},
		"spaces at the ends":     {To: []string{"a@example.com"}, Subject: "  two  spaces  ", Body: "  b  "},
		"no subject":             {To: []string{"a@example.com"}, Body: "b"},
		"hidden characters":      {To: []string{"a@example.com"}, Subject: "\ufeffa\u202eb", Body: "a\u200bb"},
		"a boundary in the body": {To: []string{"a@example.com"}, Subject: "s",
			Body: "--boundary\nContent-Type: text/html\n\n<script>"},
		"our own boundary": {To: []string{"a@example.com"}, Subject: "s",
			Body: "x\n--" + boundary("action_1") + "--\ny", HTMLBody: "x\n--" + boundary("action_1") + "\ny"},
		"headers in the body": {To: []string{"a@example.com"}, Subject: "s", Body: "Bcc: evil@x.com\n\nx"},
		"a dot, From and long lines": {To: []string{"a@example.com"}, Subject: "s",
			Body: ".\nFrom x\n" + strings.Repeat("x", 5000) + "\ntab\t \n=20="},
		"with HTML": {To: []string{"a@example.com"}, Subject: "s", Body: "b",
			HTMLBody: "<p>Grüße</p>\n"},
		"an answer": {To: []string{"a@example.com"}, Subject: "s", Body: "b",
			InReplyTo: "<x@y.example>"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := mustBuild(t, a)
			p := parse(t, raw)
			if !slices.Equal(p.to, a.To) || !slices.Equal(p.cc, a.Cc) || !slices.Equal(p.bcc, a.Bcc) ||
				p.subject != a.Subject {
				t.Errorf("to %q, cc %q, bcc %q, subject %q", p.to, p.cc, p.bcc, p.subject)
			}
			kinds, bodies := []string{"text/plain"}, []string{a.Body}
			if a.HTMLBody != "" {
				kinds, bodies = append(kinds, "text/html"), append(bodies, a.HTMLBody)
			}
			if !slices.Equal(p.kinds, kinds) || !slices.Equal(p.bodies, bodies) {
				t.Errorf("parts %q with %q", p.kinds, p.bodies)
			}
			if p.header.Get("X-Countersign-Action") != "action_1" || p.header.Get("In-Reply-To") != a.InReplyTo {
				t.Errorf("headers %v", p.header)
			}
			for _, none := range []string{"Date", "Message-Id", "From", "Sender", "Reply-To"} {
				if p.header.Get(none) != "" {
					t.Errorf("there is a %s", none)
				}
			}
			checkLines(t, raw)
			if !bytes.Equal(raw, mustBuild(t, a)) {
				t.Error("built twice, the bytes differ")
			}
			if !same(raw, raw) {
				t.Error("the message is not the same as itself")
			}
		})
	}
}

// checkLines checks the wire format: ASCII, CRLF, at most 998 octets a line (RFC 5322 §2.1.1).
func checkLines(t *testing.T, raw []byte) {
	t.Helper()
	for _, line := range strings.Split(string(raw), "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
			t.Fatalf("a line of %d octets, or a bare line end: %.80q", len(line), line)
		}
		for i := range len(line) {
			if line[i] >= 0x80 {
				t.Fatalf("a line is not ASCII: %.80q", line)
			}
		}
	}
}

func TestMIMEHeaderInjection(t *testing.T) {
	for _, id := range []string{"", "a\r\nBcc: e@x.com", strings.Repeat("a", 129)} {
		if raw, err := build(Args{To: []string{"a@example.com"}, Body: "b"}, tool.Call{ActionID: id}); err == nil {
			t.Errorf("built with %q:\n%s", id, raw)
		}
	}
}

func TestSameAfterChanges(t *testing.T) {
	base := Args{To: []string{"a@example.com"}, Cc: []string{"c@example.com"}, Bcc: []string{"d@example.com"},
		Subject: "s", Body: "b\n", HTMLBody: "<p>b"}
	built, err := build(base, tool.Call{ActionID: "action_1", Place: tool.Place{Name: "me@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	raw := string(built)
	stored := "Received: by google\r\nX-Google-Id: 1\r\nDate: Mon, 02 Jan 2006 15:04:05 -0700\r\nMessage-ID: " +
		"<1@mail.gmail.com>\r\n" + raw
	for name, ok := range map[string]string{
		"headers added":         stored,
		"the mark dropped":      strings.Replace(stored, "X-Countersign-Action: action_1\r\n", "", 1),
		"folded anew":           strings.Replace(stored, "To: a@example.com", "To:\r\n a@example.com", 1),
		"a name in angles":      strings.Replace(stored, "To: a@example.com", "To: <a@EXAMPLE.com>", 1),
		"another encoding":      strings.Replace(stored, "quoted-printable", "7bit", 1),
		"subject as a B word":   strings.Replace(stored, "Subject: s", "Subject: =?UTF-8?B?cw==?=", 1),
		"blanks at the end":     strings.Replace(stored, "<p>b", "<p>b\r\n\r\n", 1),
		"a name for the sender": strings.Replace(stored, "From: me@example.com", "From: Me <me@EXAMPLE.com>", 1),
		"boundary of their own": strings.ReplaceAll(stored, boundary("action_1"), "000000000000abc"),
	} {
		if !same([]byte(raw), []byte(ok)) {
			t.Errorf("%s: taken for a change", name)
		}
	}
	end := "--" + boundary("action_1") + "--"
	for name, bad := range map[string]string{
		"another recipient":  strings.Replace(stored, "To: a@", "To: e@", 1),
		"one more recipient": strings.Replace(stored, "Cc: c@example.com", "Cc: c@example.com, e@x.com", 1),
		"a second To":        "To: e@x.com\r\n" + stored,
		"no blind copy":      strings.Replace(stored, "Bcc: d@example.com\r\n", "", 1),
		"another subject":    strings.Replace(stored, "Subject: s", "Subject: t", 1),
		"another body":       strings.Replace(stored, "\r\n\r\nb", "\r\n\r\nc", 1),
		"another HTML":       strings.Replace(stored, "<p>b", "<p>c", 1),
		"one more part": strings.Replace(stored, end,
			"--"+boundary("action_1")+"\r\nContent-Type: text/plain\r\n\r\nx\r\n"+end, 1),
		"an attachment": strings.Replace(stored, "Content-Type: text/html",
			"Content-Disposition: attachment\r\nContent-Type: text/html", 1),
		"answers elsewhere":  "Reply-To: e@x.com\r\n" + stored,
		"another action":     strings.Replace(stored, "action_1", "action_2", 1),
		"another sender":     strings.Replace(stored, "From: me@", "From: you@", 1),
		"no sender":          strings.Replace(stored, "From: me@example.com\r\n", "", 1),
		"a second sender":    "From: you@example.com\r\n" + stored,
		"a Sender":           "Sender: you@example.com\r\n" + stored,
		"sent on":            "Resent-From: you@example.com\r\n" + stored,
		"sent on to another": "Resent-To: e@x.com\r\n" + stored,
		"sent on in secret":  "Resent-Bcc: e@x.com\r\n" + stored,
		"a receipt":          "Disposition-Notification-To: e@x.com\r\n" + stored,
		"a return receipt":   "Return-Receipt-To: e@x.com\r\n" + stored,
		"another way back":   "Return-Path: <e@x.com>\r\n" + stored,
		"a second subject":   "Subject: t\r\n" + stored,
		"an answer to":       "In-Reply-To: <1@x.com>\r\n" + stored,
		"a reference":        "References: <1@x.com>\r\n" + stored,
		"a list":             "List-Unsubscribe: <https://x.com>\r\n" + stored,
		"a header of theirs": "X-Confirm-Reading-To: e@x.com\r\n" + stored,
		"mixed":              strings.Replace(stored, "multipart/alternative", "multipart/mixed", 1),
		"related":            strings.Replace(stored, "multipart/alternative", "multipart/related", 1),
		"HTML as text":       strings.Replace(stored, "text/html", "text/plain", 1),
		"a file name": strings.Replace(stored, "Content-Type: text/html;",
			"Content-Type: text/html; name=\"x.html\";", 1),
		"a name for a file": strings.Replace(stored, "Content-Type: text/html",
			"Content-Disposition: inline; filename=x.html\r\nContent-Type: text/html", 1),
		"inline": strings.Replace(stored, "Content-Type: text/html",
			"Content-Disposition: inline\r\nContent-Type: text/html", 1),
		"an id for a part": strings.Replace(stored, "Content-Type: text/html",
			"Content-Id: <x>\r\nContent-Type: text/html", 1),
		"a place for a part": strings.Replace(stored, "Content-Type: text/html",
			"Content-Location: https://x.com\r\nContent-Type: text/html", 1),
		"a second type": strings.Replace(stored, "Content-Type: text/html",
			"Content-Type: text/plain\r\nContent-Type: text/html", 1),
		"a form of lines": strings.Replace(stored, "Content-Type: text/plain;",
			"Content-Type: text/plain; format=flowed;", 1),
		"the whole a file": "Content-Disposition: attachment; filename=x\r\n" + stored,
		"no message":       "x",
	} {
		if bad == stored {
			t.Fatalf("%s: the test changes nothing", name)
		}
		if same([]byte(raw), []byte(bad)) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// TestMIMEFromSetByGmail checks that a From which Gmail adds is accepted if Google did not say which address the
// account has.
func TestMIMEFromSetByGmail(t *testing.T) {
	raw := mustBuild(t, Args{To: []string{"a@example.com"}, Body: "b"})
	from := func(s string) []byte { return slices.Concat([]byte(s), raw) }
	one, two := from("From: me@example.com\r\n"), from("From: me@example.com\r\nFrom: you@example.com\r\n")
	if !sameFrom("", raw, one) || sameFrom("", raw, two) || sameFrom("", raw, from("Sender: me@example.com\r\n")) ||
		same(raw, one) {
		t.Error("a sender of Gmail's is taken wrongly")
	}
}

// ours are the only headers of a message that the tool builds.
var ours = []string{"Bcc", "Cc", "Content-Transfer-Encoding", "Content-Type", "Mime-Version", "Subject", "To",
	"X-Countersign-Action"}

// FuzzBuild checks that every message that normalize accepts parses to the same recipients, subject and parts, without
// any other header or part.
func FuzzBuild(f *testing.F) {
	f.Add("a@example.com", "", "b@example.com", "subject", "body", "")
	f.Add("a@example.com", "c@example.com,d@example.com", "A@Example.com", "=?utf-8?q?x?=", "--b\r\n\r\n.\r\n", "<p>")
	f.Add("a@example.com", "", "", strings.Repeat("s", 998), "b", "")
	f.Add("x+y@sub.example.org", "", "", strings.Repeat("ü ", 300), "\u202e\u2028", "=_countersign_\n--=_countersign_")
	f.Add("a@example.com", "", "", "s\u0085", "x\n--"+boundary("action_1")+"--\nBcc: e@x.com\n\n=\n=20\n \n.",
		"--"+boundary("action_1")+"\nContent-Type: text/html\n\n<script>")
	f.Add(strings.Repeat("a", 64)+"@"+strings.Repeat("b.", 90)+"example", "=x@example.com", "", " s ",
		"From x\n"+strings.Repeat("é", 600)+"\t\n", "")
	tl := New(nil, Options{})
	f.Fuzz(func(t *testing.T, to, cc, bcc, subject, body, html string) {
		in := map[string]any{"to": strings.Split(to, ","), "subject": subject, "body": body}
		for name, v := range map[string]string{"cc": cc, "bcc": bcc} {
			if v != "" {
				in[name] = strings.Split(v, ",")
			}
		}
		if html != "" {
			in["htmlBody"] = html
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		args, err := tl.Normalize(b)
		if err != nil {
			return
		}
		if again, err := tl.Normalize(args); err != nil || !bytes.Equal(again, args) {
			t.Fatalf("the canonical form %s becomes %s, %v", args, again, err)
		}
		var a Args
		if err := json.Unmarshal(args, &a); err != nil {
			t.Fatal(err)
		}
		raw := mustBuild(t, a)
		p := parse(t, raw)
		if !slices.Equal(p.to, a.To) || !slices.Equal(p.cc, a.Cc) || !slices.Equal(p.bcc, a.Bcc) ||
			p.subject != a.Subject {
			t.Fatalf("%+v became\n%s", a, raw)
		}
		kinds, bodies := []string{"text/plain"}, []string{a.Body}
		if a.HTMLBody != "" {
			kinds, bodies = append(kinds, "text/html"), append(bodies, a.HTMLBody)
		}
		if !slices.Equal(p.kinds, kinds) || !slices.Equal(p.bodies, bodies) {
			t.Fatalf("%+v became %q with %q", a, p.kinds, p.bodies)
		}
		for name, values := range p.header {
			if !slices.Contains(ours, name) || len(values) != 1 {
				t.Fatalf("there is %s: %q", name, values)
			}
		}
		checkLines(t, raw)
		if !same(raw, raw) {
			t.Fatalf("the message is not the same as itself:\n%s", raw)
		}
	})
}

// TestIDsInHeaders checks the Message-IDs that are found in headers of mail in use.
func TestIDsInHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"<a@b>": "<a@b>", " <a@b> (added by postmaster@b)": "<a@b>", "a@b": "<a@b>", "< a@b >": "<a@b>",
		"(comment) <a@b>": "<a@b>", "<a@b@c>": "<a@b@c>", "<a@b>\r\n": "<a@b>", "": "", "<>": "", "<a>": "",
		"<a b@c>": "", "a b@c": "", "<a@b": "<a@b>", "<ä@b>": "", "<a@b\x00>": "",
	} {
		if got := idOf(header); got != want {
			t.Errorf("%q: %q; want %q", header, got, want)
		}
	}
	for header, want := range map[string]string{
		"<a@b> <c@d>": "<a@b> <c@d>", "<a@b><c@d>": "<a@b> <c@d>", "a@b c@d": "<a@b> <c@d>",
		"<a@b>\r\n\t<c@d> message of x@y": "<a@b> <c@d>", "mail of Ana": "",
	} {
		if got := strings.Join(idsIn(header), " "); got != want {
			t.Errorf("%q: %q; want %q", header, got, want)
		}
	}
}
