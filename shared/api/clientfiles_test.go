package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// A door is a route for the chat clients of other makers.
type door struct {
	path string
	// body is a request with the newest message's ID, and the user's messages as parts.
	body func(id string, messages ...string) string
	text func(words string) string            // a part
	file func(name, mime, data string) string // a part with the file's bytes
	link func(url string) string              // a part with a URL
	at   string                               // where the URL of the second part of the only message is
}

var doors = map[string]door{
	"useChat": {uiPath, func(id string, messages ...string) string {
		return fmt.Sprintf(`{"id":"c","trigger":"submit-message","messages":[%s]}`, listed(id, messages, "parts"))
	}, textPart, func(name, mime, data string) string {
		return fmt.Sprintf(`{"type":"file","mediaType":%q,"filename":%s,"url":"data:%s;base64,%s"}`, mime,
			strictjson.Text(name), mime, b64(data))
	}, func(url string) string {
		return fmt.Sprintf(`{"type":"file","mediaType":"image/png","url":%q}`, url)
	}, "messages/0/parts/1/url"},
	"AG-UI 1.0": {aguiPath, aguiBody, textPart, func(name, mime, data string) string {
		return fmt.Sprintf(`{"type":"document","source":{"type":"data","value":%q,"mimeType":%q},`+
			`"metadata":{"filename":%s}}`, b64(data), mime, strictjson.Text(name))
	}, func(url string) string {
		return fmt.Sprintf(`{"type":"image","source":{"type":"url","value":%q}}`, url)
	}, "messages/0/content/1/source/value"},
	"AG-UI's binary": {aguiPath, aguiBody, textPart, func(name, mime, data string) string {
		return fmt.Sprintf(`{"type":"binary","mimeType":%q,"data":%q,"filename":%s}`, mime, b64(data),
			strictjson.Text(name))
	}, func(url string) string {
		return fmt.Sprintf(`{"type":"binary","mimeType":"image/png","url":%q}`, url)
	}, "messages/0/content/1/url"},
}

func aguiBody(id string, messages ...string) string {
	return fmt.Sprintf(`{"threadId":"c","runId":%q,"messages":[%s],"tools":[],"context":[],"state":{}}`, "r-"+id,
		listed(id, messages, "content"))
}

func textPart(words string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, words) }

// listed returns messages of the user. The newest one has the ID.
func listed(id string, messages []string, parts string) string {
	var all []string
	for i, m := range messages {
		one := fmt.Sprintf("%s-%d", id, i)
		if i == len(messages)-1 {
			one = id
		}
		all = append(all, fmt.Sprintf(`{"id":%q,"role":"user",%q:[%s]}`, one, parts, m))
	}
	return strings.Join(all, ",")
}

// TestFilesOfOtherClients sends files as each client does. They are the run's files, as with POST /run. The client
// sends them again as history with the next message, and they are not stored again.
func TestFilesOfOtherClients(t *testing.T) {
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.model.Then(script.Turn{Text: "Read."}, script.Turn{Text: "Again."})
			first := strings.Join([]string{d.text("read"), d.file("offer.pdf", "image/png", offer),
				d.file("größe.csv", "", "a;ü\n")}, ",")
			more := d.link("data:text/plain,hello%20w%C3%B6rld") + "," +
				d.link("DATA:text/x;charset=utf-8;BASE64,Yg%3D%3D")
			for range 2 { // the second is a retry
				if a := w.send("POST", d.path, "ana", d.body("m1", first)); a.StatusCode != http.StatusOK {
					t.Fatalf("%s %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
				}
			}
			a := w.send("POST", d.path, "ana", d.body("m2", first, d.text("and now?")+","+more))
			if a.StatusCode != http.StatusOK || len(w.model.Requests()) != 2 {
				t.Fatalf("%d requests; %s %s", len(w.model.Requests()), a.Status, a.body)
			}
			for i, parts := range [][]string{
				{b64(offer), b64("a;ü\n"), "application/pdf", "text/plain", `\"offer.pdf\"`},
				{b64("hello wörld"), b64("b"), `\"file 2\"`},
			} {
				contents := w.model.Requests()[i].Contents
				for _, part := range parts {
					if sent := string(contents[len(contents)-1]); !strings.Contains(sent, part) {
						t.Errorf("the model did not get %s: %s", part, sent)
					}
				}
			}
			thread := w.send("GET", "/api/agent/threads", "ana", "").at("threads", "0", "threadId")
			messages := w.send("GET", "/api/agent/threads/"+thread+"/messages", "ana", "")
			if n := strings.Count(string(messages.body), `"name":"offer.pdf"`); n != 1 {
				t.Errorf("the file is listed %d times: %s", n, messages.body)
			}
			w.downloads(messages.at("messages", "0", "runId"))
		})
	}
}

// TestFilesOfAnotherRequest sends the same message again with another file, and with another name.
func TestFilesOfAnotherRequest(t *testing.T) {
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.model.Then(script.Turn{Text: "1"}, script.Turn{Text: "2"}, script.Turn{Text: "3"})
			for i, file := range []string{d.file("a", "", "a"), d.file("a", "", "b"), d.file("b", "", "a")} {
				a := w.send("POST", d.path, "ana", d.body("m1", d.text("x")+","+file))
				switch {
				case d.path == uiPath && (a.StatusCode != 200 || len(w.model.Requests()) != i+1): // an edited message
					t.Errorf("%d: %s %s", i, a.Status, a.body)
				case d.path == aguiPath && a.StatusCode != map[bool]int{true: 200, false: 409}[i == 0]:
					t.Errorf("%d: %s %s", i, a.Status, a.body)
				}
			}
		})
	}
}

// TestUploadsOfOtherClients sends uploaded files by the URL that their upload returned. Another upload under the same
// message is another request, and a file of another user is refused with the field that names it.
func TestUploadsOfOtherClients(t *testing.T) {
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newPlansWithFiles(t)
			w.model.Then(script.Turn{Text: "Read."}, script.Turn{Text: "Again."}, script.Turn{Text: "Edited."})
			first, second := w.uploadURL("offer.pdf", offer), w.uploadURL("b.txt", "b")
			for i, c := range []struct{ user, id, url, data string }{
				{"ana", "m1", first, offer}, {"ana", "m1", first, offer}, {"ana", "m2", second, "b"}} {
				a := w.send("POST", d.path, c.user, d.body(c.id, d.text("read")+","+d.link(c.url)))
				if a.is(t, http.StatusOK); len(w.model.Requests()) != max(1, i) {
					t.Errorf("%d: the model got %d requests", i, len(w.model.Requests()))
				}
				w.gets(b64(c.data))
			}
			a := w.send("POST", d.path, "ana", d.body("m2", d.text("read")+","+d.link(first)))
			if ok := map[string]int{uiPath: 200, aguiPath: 409}[d.path]; a.StatusCode != ok {
				t.Errorf("another file under the same ID: %s %s", a.Status, a.body)
			}
			for url, says := range map[string]string{
				"countersign:file/x": "invalid ID", first + "/1": "invalid ID", "countersign:run/1": "data: URL",
				"countersign:file/" + strings.Repeat("a", 26): "no file with this ID",
			} {
				a := w.send("POST", d.path, "ana", d.body("m3", d.text("read")+","+d.link(url)))
				a.is(t, http.StatusBadRequest, "error.field", d.at)
				if !strings.Contains(string(a.body), says) {
					t.Errorf("%s: %s; want a.body with %q", url, a.body, says)
				}
			}
			a = w.send("POST", d.path, "ben", d.body("m4", d.text("read")+","+d.link(first)))
			a.is(t, http.StatusBadRequest, "error.field", d.at)
		})
	}
}

// TestFilesOfOtherClientsRefused has files that are refused with their field, before a run begins.
func TestFilesOfOtherClientsRefused(t *testing.T) {
	half := strings.Repeat("a", attachment.MaxBytes/2+1)
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			place := strings.TrimSuffix(strings.TrimSuffix(d.at, "/value"), "/url")
			for part, says := range map[string]string{
				d.link("https://example.com/a.png"):                                       "does not fetch",
				d.link("HTTP://example.com/a.png"):                                        "does not fetch",
				d.link("blob:https://x.example/1"):                                        "data: URL",
				d.link("/a.png"):                                                          "data: URL",
				d.link("data:"):                                                           "data: URL",
				d.link("data:image/png;base64,%%%"):                                       "data: URL",
				d.link("data:image/png;base64,!"):                                         "base64",
				d.file("a.docx", "", "PK\x03\x04"):                                        "Office document",
				d.file("a.txt", "", ""):                                                   "empty file",
				d.file("a", "", half) + "," + d.file("b", "", half):                       "the limit is 1572864",
				strings.TrimSuffix(strings.Repeat(d.file("a", "", "a")+",", 17), ","):     "17 files",
				d.file("a.txt", "", "a") + "," + d.link("ftp://"+url.PathEscape("x.y/z")): "data: URL",
			} {
				a := w.send("POST", d.path, "ana", d.body("m1", d.text("x")+","+part))
				if field := a.at("error", "field"); a.StatusCode != 400 || !strings.HasPrefix(field, place[:17]) ||
					!strings.Contains(string(a.body), says) {
					t.Errorf("%.80s: %s %.300s", part, a.Status, a.body)
				}
			}
			a := w.send("POST", d.path, "ana", d.body("m1", d.text("x")+","+d.link("https://example.com/a.png")))
			if a.at("error", "field") != d.at {
				t.Errorf("%s; want a.at(\"error\", \"field\") %v", a.body, d.at)
			}
			if a := w.send("POST", d.path, "ana", d.body("m1", d.file("a", "", "a"))); a.StatusCode != 400 ||
				!strings.Contains(string(a.body), "text is required") {
				t.Errorf("a file alone: %s %s", a.Status, a.body)
			}
			if len(w.model.Requests()) > 0 {
				t.Error("the model was asked")
			}
		})
	}
}

// TestFilesOfOtherClientsNeedApproval has a user who always allows e-mails to bob. After a file, they need approval.
func TestFilesOfOtherClientsNeedApproval(t *testing.T) {
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.wants("hello")
			asked := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob hello"}`)
			w.resolve(asked, "approve_and_always_allow_recipient")
			w.asks("hi")
			a := w.send("POST", d.path, "ana", d.body("m1", d.text("mail bob hi")+","+d.file("offer.pdf", "", offer)))
			pending := w.send("GET", "/api/agent/approvals/pending", "ana", "")
			if !strings.Contains(string(pending.body), `"origin":"the file offer.pdf"`) {
				t.Errorf("%s; %s; want pending.body with %q", pending.body, a.body, `"origin":"the file offer.pdf"`)
			}
		})
	}
}

// TestLargestConversation sends the largest files, and then the next message with them as history, and with as many new
// ones.
func TestLargestConversation(t *testing.T) {
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.model.Then(script.Turn{Text: "1"}, script.Turn{Text: "2"})
			most := d.text("x") + "," + d.file("a", "", strings.Repeat("a", attachment.MaxBytes))
			for i, body := range []string{d.body("m1", most), d.body("m2", most, most)} {
				if a := w.send("POST", d.path, "ana", body); a.StatusCode != http.StatusOK {
					t.Errorf("%d: %s %.300s", i, a.Status, a.body)
				}
			}
			for i, body := range []string{d.body("m3", most, most, most, d.text("y")), d.body("m3",
				d.text(strings.Repeat("a", 1<<20)), d.text("y"))} {
				if a := w.send("POST", d.path, "ana", body); a.StatusCode != http.StatusRequestEntityTooLarge {
					t.Errorf("too much %d: %s %.300s", i, a.Status, a.body)
				}
			}
		})
	}
}
