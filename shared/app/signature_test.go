package app_test

import (
	"html"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// TestSignatureOnce sends and forwards e-mails and leaves drafts of answers, with a text and an HTML version. Each
// version has the signature once, above the quotation, also if the model has signed one or both.
func TestSignatureOnce(t *testing.T) {
	const signature = "Zoë “Zo” O'Hara <zoe@acme.example>\nACME & Søn 🌊"
	inHTML := strings.ReplaceAll(html.EscapeString(signature), "\n", "</div>\n<div>")
	for name, c := range map[string]struct{ text, html string }{
		"unsigned":                 {"Noon is fine.", "<p>Noon is <b>fine</b>.</p>"},
		"signed in both":           {"Noon is fine.\n\n-- \n" + signature, "<p>Noon is fine.<div>" + inHTML + "</div>"},
		"signed in the text":       {"Noon is fine.\n\n" + signature + "\n", "<p>Noon is fine.</p>"},
		"signed in the HTML":       {"Noon is fine.", "<html>Noon is fine.<br>--<br>" + inHTML + "</html>"},
		"signed in another form":   {"Noon is fine.\n" + strings.ReplaceAll(signature, "ë", "e\u0308"), ""},
		"with the name at its end": {"Noon is fine for Zoë", "<p>Noon is fine for Z<i>o</i>ë</p>"},
	} {
		for kind, tool := range map[string]string{"new": gmail.Name, "reply": gmail.LeaveDraft, "forward": gmail.Name} {
			t.Run(name+" "+kind, func(t *testing.T) {
				w, id := answering(t, asked, "AGENTS="+daysAgent(t, tool))
				w.prefers(func(s *preference.Set) { s.Signature = signature })
				args := map[string]any{"body": c.text}
				if c.html != "" {
					args["htmlBody"] = c.html
				}
				switch kind {
				case "reply":
					args["replyTo"] = map[string]any{"messageId": id}
				case "forward":
					args["forward"], args["to"] = map[string]any{"messageId": id}, []string{"bob@example.com"}
				default:
					args["subject"], args["to"] = "s", []string{"bob@example.com"}
				}
				w.SetModel(testkit.Wants(tool, args))
				if r := w.approve(w.askOf("days")); r.Status != "completed" {
					t.Fatalf("%s; want r.Status “completed”", r.Body)
				}
				raw := ""
				if drafts := w.Google.Drafts(testkit.Address("ana")); len(drafts) == 1 {
					raw = string(drafts[0])
				} else if sent := w.Google.Messages(); len(sent) == 1 {
					raw = sent[0].Raw
				}
				versions := bodiesOf(t, raw)
				if want := min(len(c.html), 1) + 1; len(versions) != want {
					t.Fatalf("%d versions; want %d: %s", len(versions), want, raw)
				}
				for i, v := range versions {
					signedOnce(t, v, signature, kind != "new", i == 1)
				}
			})
		}
	}
}

// signedOnce checks one version of an e-mail.
func signedOnce(t *testing.T, body, signature string, quotes, isHTML bool) {
	t.Helper()
	body = strings.ReplaceAll(strings.ReplaceAll(body, "e\u0308", "ë"), "\r\n", "\n")
	if isHTML {
		body = html.UnescapeString(strings.NewReplacer("</div>\n<div>", "\n", "<br>\n", "\n").Replace(body))
	}
	above, below, found := strings.Cut(body, signature)
	if !found || strings.Contains(below, signature) || strings.Contains(above, "Is noon fine?") ||
		strings.Contains(below, "Is noon fine?") != quotes {
		t.Errorf("it does not have the signature once, above the quotation:\n%s", body)
	}
}

// bodiesOf returns the text of an e-mail and its HTML version, if it has one.
func bodiesOf(t *testing.T, raw string) (bodies []string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	read := func(encoding string, r io.Reader) {
		if encoding == "quoted-printable" {
			r = quotedprintable.NewReader(r)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		bodies = append(bodies, string(b))
	}
	if !strings.HasPrefix(kind, "multipart/") {
		read(m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return bodies
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); err == nil; {
		var p *multipart.Part
		if p, err = parts.NextRawPart(); err == nil {
			read(p.Header.Get("Content-Transfer-Encoding"), p)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return bodies
}
