package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// offer is a file that Gemini reads, with bytes that a careless encoding would change.
var offer = []byte("%PDF-1.7\r\n\xff\x00 \n\n.\r\n--=_countersign_\r\nFrom x\n \t\n")

// withFile starts a run with a file, in a conversation if threadID is not empty.
func (w *proved) withFile(threadID, name string, data []byte, args map[string]any) testkit.Answer {
	w.t.Helper()
	w.SetModel(testkit.Wants(gmail.Name, args))
	body := map[string]any{"prompt": "Mail it to Bob."}
	if threadID != "" {
		body["threadId"] = threadID
	}
	if data != nil {
		body["attachments"] = []map[string]string{{"name": name, "data": base64.StdEncoding.EncodeToString(data)}}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.call("POST", "/api/agent/run", string(raw))
	if r.HTTP != http.StatusOK {
		w.t.Fatalf("%d %s; want %d", r.HTTP, r.Body, http.StatusOK)
	}
	return r
}

// mailOf is an e-mail to Bob with these files.
func mailOf(files ...map[string]any) map[string]any {
	args := testkit.Mail("bob@example.com", "Our offer", "Please find it attached.")
	args["attachments"] = files
	return args
}

// sentFiles approves the card, and returns the files of the e-mail that was sent.
func (w *proved) sentFiles(r testkit.Answer) []fakegoogle.File {
	w.t.Helper()
	w.sends(r)
	all := w.Google.Messages()
	return all[len(all)-1].Files
}

// isFile checks the only file of a sent e-mail, byte for byte.
func isFile(t *testing.T, files []fakegoogle.File, name, kind string, data []byte) {
	t.Helper()
	if len(files) != 1 || files[0].Name != name || files[0].Type != kind || !bytes.Equal(files[0].Data, data) {
		t.Errorf("%d files were sent: %.300q; want %s (%s) with %.100q", len(files), fmt.Sprintf("%+v", files), name,
			kind, data)
	}
}

// TestMailFileOfConversation sends a file that the user attached, in both modes. The card shows what leaves.
func TestMailFileOfConversation(t *testing.T) {
	for _, mode := range []string{"draft", "direct"} {
		t.Run(mode, func(t *testing.T) {
			w := deploy(t, "GMAIL_SEND_MODE="+mode)
			r := w.withFile("", "Angebot für Bob.pdf", offer, mailOf(map[string]any{"file": "Angebot für Bob.pdf"}))
			if len(r.Approvals) != 1 {
				t.Fatalf("%s; want one card", r.Body)
			}
			card := string(w.call("GET", "/api/agent/approvals/pending", "").Body)
			holds(t, "the card", card, `"label":"File 1"`, "Angebot für Bob.pdf", "application/pdf",
				fmt.Sprintf("%d bytes", len(offer)), sumOf(string(offer)))
			isFile(t, w.sentFiles(r), "Angebot für Bob.pdf", "application/pdf", offer)
			holds(t, "the e-mail", w.Google.Messages()[0].Text, "Please find it attached.")
		})
	}
}

// TestMailFileOfEarlierRequest sends a file of an earlier request of the conversation, as a draft too.
func TestMailFileOfEarlierRequest(t *testing.T) {
	w := deploy(t)
	csv := []byte("Preis;5 €\n")
	w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Five."} })
	r := w.withFile("", "prices.csv", csv, nil)
	r = w.withFile(r.ThreadID, "", nil, mailOf(map[string]any{"file": "prices.csv"}))
	isFile(t, w.sentFiles(r), "prices.csv", "text/plain", csv)
}

// withParts is an e-mail to ana with a PDF, a program, an attached e-mail, and a picture that the HTML shows.
var withParts = strings.ReplaceAll(`From: Ben <ben@example.com>
To: ana@example.com
Message-ID: <2@example.com>
Subject: Files
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html; charset=utf-8

<p>See the files.</p>
--b
Content-Type: application/pdf; name="x"
Content-Disposition: attachment; filename*=utf-8''Angebot%20f%C3%BCr%20Ana.pdf
Content-Transfer-Encoding: base64

`+base64.StdEncoding.EncodeToString(offer)+`
--b
Content-Type: text/plain; name="../../setup.exe"
Content-Disposition: attachment; filename="../../setup.exe"

MZ not a text
--b
Content-Type: message/rfc822
Content-Disposition: attachment; filename="old.eml"

Subject: Old
From: eve@evil.example

Old words
--b--
`, "\n", "\r\n")

// TestMailFileOfMail sends a file of an e-mail that ana has received.
func TestMailFileOfMail(t *testing.T) {
	for _, mode := range []string{"draft", "direct"} {
		t.Run(mode, func(t *testing.T) {
			w, id := answering(t, withParts, "GMAIL_SEND_MODE="+mode)
			r, card := w.proposes(mailOf(map[string]any{"messageId": id, "part": "1"}))
			holds(t, "the card", card, "Angebot für Ana.pdf", "application/pdf", sumOf(string(offer)),
				"from an e-mail of Ben")
			isFile(t, w.sentFiles(r), "Angebot für Ana.pdf", "application/pdf", offer)
		})
	}
}

// TestMailFileRisks has an e-mail with a program under the type of a text, and a name with a path.
func TestMailFileRisks(t *testing.T) {
	w, id := answering(t, withParts)
	r, card := w.proposes(mailOf(map[string]any{"messageId": id, "part": "2"}))
	holds(t, "the card", card, ".._.._setup.exe", "is a program: opening it runs it")
	isFile(t, w.sentFiles(r), ".._.._setup.exe", "text/plain", []byte("MZ not a text"))
}

// TestForwardedFiles checks that a forwarded e-mail keeps its files, except an attached e-mail, which the card names.
func TestForwardedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		forward map[string]any
		files   []string
		left    string
	}{
		"with its files": {nil, []string{"Angebot für Ana.pdf", ".._.._setup.exe"}, "are not sent: old.eml"},
		"without": {map[string]any{"withoutAttachments": true}, nil,
			"are not sent: Angebot für Ana.pdf, ../../setup.exe, old.eml"},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := answering(t, withParts)
			forward := map[string]any{"messageId": id}
			for k, v := range c.forward {
				forward[k] = v
			}
			r, card := w.proposes(map[string]any{"to": []string{"fay@example.com"}, "body": "See below.",
				"forward": forward})
			holds(t, "the card", card, c.left)
			var names []string
			for _, f := range w.sentFiles(r) {
				names = append(names, f.Name)
			}
			if fmt.Sprint(names) != fmt.Sprint(c.files) {
				t.Errorf("sent %q, want %q", names, c.files)
			}
		})
	}
}

// TestMailFileRefused has files that no card is made for.
func TestMailFileRefused(t *testing.T) {
	w, id := answering(t, withParts)
	b, err := w.Call(t.Context(), "ben", "POST", runPath, `{"prompt":"x","attachments":[{"name":"ben.txt","data":"`+
		base64.StdEncoding.EncodeToString([]byte("ben's"))+`"}]}`)
	if err != nil || b.HTTP != http.StatusOK {
		t.Fatalf("%v %s", err, b.Body)
	}
	many := make([]map[string]any, 17)
	for i := range many {
		many[i] = map[string]any{"messageId": id, "part": fmt.Sprint(i)}
	}
	pdf := map[string]any{"messageId": id, "part": "1"}
	for name, c := range map[string]struct {
		files  []map[string]any
		reason string
	}{
		"an unknown name":     {[]map[string]any{{"file": "other.pdf"}}, "has attached no file"},
		"another user's file": {[]map[string]any{{"file": "ben.txt"}}, "has attached no file"},
		"a path":              {[]map[string]any{{"file": "/etc/passwd"}}, "has attached no file"},
		"nothing":             {[]map[string]any{{}}, "attachments[0].file"},
		"both":                {[]map[string]any{{"file": "a", "messageId": id, "part": "1"}}, "attachments[0].file"},
		"an unknown mail":     {[]map[string]any{{"messageId": "18cf", "part": "1"}}, "no such mail"},
		"an unknown part":     {[]map[string]any{{"messageId": id, "part": "9"}}, "no such file"},
		"a container":         {[]map[string]any{{"messageId": id}}, "no such file"},
		"no part's ID":        {[]map[string]any{{"messageId": id, "part": "../1"}}, "attachments[0].part"},
		"twice":               {[]map[string]any{pdf, pdf}, "attachments[1].file"},
		"17 files":            {many, "attachments"},
		"facts of the model": {[]map[string]any{{"file": "other.pdf", "is": map[string]any{"name": "x", "type": "y",
			"size": 1, "sha256": "z", "stored": "countersign:" + b.RunID + "/1/1/5"}}}, "has attached no file"},
	} {
		r, _ := w.proposes(mailOf(c.files...))
		if len(r.Approvals) != 0 || !strings.Contains(string(r.Body), c.reason) {
			t.Errorf("%s: %s; want no card, and %q", name, r.Body, c.reason)
		}
	}
}

// TestMailFileChanged replaces the e-mail with the file between the card and the intent.
func TestMailFileChanged(t *testing.T) {
	for name, raw := range map[string]string{
		"other bytes": strings.Replace(withParts, "JVBERi", "JVBERj", 1),
		"no file":     "From: ben@example.com\r\nMessage-ID: <2@example.com>\r\nSubject: Files\r\n\r\nHi",
	} {
		for _, tool := range []string{gmail.Name, gmail.LeaveDraft} {
			w, id := answering(t, withParts, "AGENTS="+daysAgent(t, tool))
			w.SetModel(testkit.Wants(tool, mailOf(map[string]any{"messageId": id, "part": "1"})))
			r := w.askOf("days")
			w.Google.Replace(testkit.Address("ana"), id, []byte(raw))
			r = w.approve(r)
			if n := len(w.Google.Messages()) + len(w.Google.Drafts(testkit.Address("ana"))); n != 0 ||
				!strings.Contains(string(r.Body), `"status":"failed"`) {
				t.Errorf("%s, %s: %d e-mails, %s; want none, and a failure", name, tool, n, r.Body)
			}
		}
	}
}

// TestMailFileDraft leaves a draft with a file.
func TestMailFileDraft(t *testing.T) {
	w, id := answering(t, withParts, "AGENTS="+daysAgent(t, gmail.LeaveDraft))
	w.SetModel(testkit.Wants(gmail.LeaveDraft, mailOf(map[string]any{"messageId": id, "part": "1"})))
	w.approve(w.askOf("days"))
	all := w.Google.Drafts(testkit.Address("ana"))
	if len(all) != 1 || !strings.Contains(strings.ReplaceAll(string(all[0]), "\r\n", ""),
		base64.StdEncoding.EncodeToString(offer)) {
		t.Errorf("the drafts are %q; want one with the file", all)
	}
}

// TestMailFileEdited has ana remove a file on the card, and name another one, which the card has not shown.
func TestMailFileEdited(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(files []any) []any
		sent int
	}{
		"removed": {func(files []any) []any { return files[:1] }, 1},
		"added":   {func(files []any) []any { return append(files, map[string]any{"file": "b.txt"}) }, 0},
		"other facts": {func(files []any) []any {
			files[0].(map[string]any)["is"].(map[string]any)["name"] = "c.txt"
			return files
		}, 1},
	} {
		w, id := answering(t, withParts)
		r, _ := w.proposes(mailOf(map[string]any{"messageId": id, "part": "1"},
			map[string]any{"messageId": id, "part": "2"}))
		var args map[string]any
		if err := json.Unmarshal(r.Approvals[0].Args, &args); err != nil {
			t.Fatal(err)
		}
		args["attachments"] = c.edit(args["attachments"].([]any))
		if got := w.edit(r.Approvals[0], args); got.HTTP != http.StatusOK {
			t.Fatalf("%s: %s", name, got.Body)
		}
		w.deliver()
		sent := w.Google.Messages()
		if len(sent) != c.sent || c.sent == 1 && sent[0].Files[0].Name != "Angebot für Ana.pdf" {
			t.Errorf("%s: %d e-mails were sent, want %d: %+v", name, len(sent), c.sent, sent)
		}
	}
}

// TestMailFileApproval checks that an e-mail with a file of another e-mail is always asked about.
func TestMailFileApproval(t *testing.T) {
	w, id := answering(t, withParts)
	r, _ := w.proposes(testkit.Mail("bob@example.com", "s", "b"))
	if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_and_always_allow_recipient"); err != nil ||
		a.HTTP != http.StatusOK {
		t.Fatalf("%s, %v; want %d", a.Body, err, http.StatusOK)
	}
	w.deliver()
	if r, _ := w.proposes(mailOf(map[string]any{"messageId": id, "part": "1"})); len(r.Approvals) != 1 {
		t.Errorf("%s; want one card", r.Body)
	}
}

// TestMailFileLarge sends an uploaded file that is larger than a prompt may bring.
func TestMailFileLarge(t *testing.T) {
	realpart.Unraced(t)
	onFileStores(t, func(t *testing.T, w *filed) {
		data := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte{0, 1, 0xff, '\n'}, 1<<20)...)
		u := w.upload(t, "ana", "large.pdf", data)
		w.SetModel(testkit.Wants(gmail.Name, mailOf(map[string]any{"file": "large.pdf"})))
		r := w.attach("ana", u.FileID)
		if len(r.Approvals) != 1 {
			t.Fatalf("%s; want one card", r.Body)
		}
		isFile(t, w.sentFiles(r), "large.pdf", "application/pdf", data)
	})
}

// TestForwardedFilesOfOthers forwards e-mails of many mail programs. Each file leaves with the bytes that Go's own
// parser finds in the e-mail.
func TestForwardedFilesOfOthers(t *testing.T) {
	mails, err := filepath.Glob("../tools/gmail/testdata/mails/*.eml")
	if err != nil || len(mails) == 0 {
		t.Fatal(err, len(mails))
	}
	w, _ := answering(t, asked, testkit.Unlimited...)
	sent := 0
	for _, name := range mails {
		raw, err := os.ReadFile(name)
		if err == nil {
			err = w.Google.Receive(testkit.Address("ana"), raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, card := w.proposes(map[string]any{"to": []string{"fay@example.com"}, "body": "See below.",
			"forward": map[string]any{"messageId": w.Google.Newest(testkit.Address("ana"))}})
		if len(r.Approvals) != 1 {
			t.Errorf("%s: %s; want one card", name, r.Body)
			continue
		}
		w.approve(r)
		all, known := w.Google.Messages(), leaves(raw)
		if len(all) == 0 {
			t.Fatalf("%s: nothing was sent", name)
		}
		for _, f := range all[len(all)-1].Files {
			sent++
			if !known[f.SHA256] || !strings.Contains(card, f.SHA256) {
				t.Errorf("%s: the file %q has other bytes: %.60q", name, f.Name, f.Data)
			}
		}
	}
	if sent < 8 {
		t.Errorf("%d files were sent; want 8 or more", sent)
	}
}

// leaves returns the SHA-256 of each part of an e-mail, by what the standard library reads.
func leaves(raw []byte) map[string]bool {
	all := map[string]bool{}
	var add func(h map[string][]string, body io.Reader)
	add = func(h map[string][]string, body io.Reader) {
		header := textproto.MIMEHeader(h)
		kind, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
		if strings.HasPrefix(kind, "multipart/") {
			parts := multipart.NewReader(body, params["boundary"])
			for {
				p, err := parts.NextRawPart()
				if err != nil {
					return
				}
				add(p.Header, p)
			}
		}
		switch strings.ToLower(strings.TrimSpace(header.Get("Content-Transfer-Encoding"))) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		b, _ := io.ReadAll(body) // as far as it can be decoded
		all[sumOf(string(b))] = true
	}
	if m, err := mail.ReadMessage(bytes.NewReader(raw)); err == nil {
		add(m.Header, m.Body)
	}
	return all
}
