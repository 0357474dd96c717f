package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// files is the field with the attachments, for the body of [wish] and of [refinement].
func files(attachments ...string) string {
	return `,"attachments":[` + strings.Join(attachments, ",") + `]`
}

// refinement is the body of a request for another plan.
func refinement(prompt, more string) string {
	return fmt.Sprintf(`{"refinementPrompt":%q%s}`, prompt, more)
}

// newPlansWithFiles is newPlans with a store of uploaded files.
func newPlansWithFiles(t *testing.T) *env {
	w := newPlans(t)
	objects := folder.New(t.TempDir())
	w.api.Records.Files, w.loop.Files = objects, objects
	return w
}

// upload uploads a file of ana, and returns the attachment with its ID.
func (w *env) upload(name, data string) string {
	w.t.Helper()
	return fmt.Sprintf(`{"fileId":%q}`, w.uploaded(name, data).at("fileId"))
}

// uploadURL uploads a file of ana, and returns its URL.
func (w *env) uploadURL(name, data string) string {
	w.t.Helper()
	return w.uploaded(name, data).at("url")
}

func (w *env) uploaded(name, data string) answer {
	w.t.Helper()
	body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\n" + data +
		"\r\n--b--\r\n"
	a := w.send("POST", "/api/agent/files", "ana", body, header("Content-Type", "multipart/form-data; boundary=b"))
	a.is(w.t, http.StatusOK, "name", name)
	return a
}

// asked returns the contents of the model's newest request.
func (w *env) asked() string {
	w.t.Helper()
	requests := w.model.Requests()
	var all strings.Builder
	for _, c := range requests[len(requests)-1].Contents {
		all.Write(c)
	}
	return all.String()
}

// TestFilesOfAPlan gives a plan one file in the request and an uploaded one, and its refinement another two. The model
// gets all of them, while it plans and in each task; the session and its run name them, and their owner downloads them.
func TestFilesOfAPlan(t *testing.T) {
	w := newPlansWithFiles(t)
	report := strings.Repeat("The report. ", attachment.MaxBytes/8)
	w.model.Then(proposes("Tell him"))
	first, last := w.upload("report.txt", report), w.upload("last.txt", "At last.")
	a := w.send("POST", plansPath, "ana", wish(files(attached("offer.pdf", offer), first)))
	a.is(t, http.StatusAccepted, "attachments.0.name", "offer.pdf", "attachments.1.name", "report.txt")
	w.push()
	path := plansPath + "/" + a.at("sessionId")
	w.gets(b64(offer), b64(report), `\"offer.pdf\"`, `\"report.txt\"`)
	seen := `,"planHash":"` + w.send("GET", path, "ana", "").at("planHash") + `"`
	more := refinement("look at this", seen+files(attached("more.txt", "Even more."), last))
	w.model.Then(proposes("Write to him"))
	w.send("POST", path+"/refine", "ana", more).is(t, 202, "attachments.3.name", "last.txt")
	w.send("POST", path+"/refine", "ana", more).is(t, 202) // a repeat gets the same response
	w.send("POST", path+"/refine", "ana", refinement("look at this", seen+files(attached("more.txt", "Other.")))).
		is(t, 409, "error.code", "already_resolved")
	w.push()
	w.gets(b64(offer), b64(report), b64("Even more."), b64("At last."), `attached \"more.txt\" and \"last.txt\"`)
	second := w.send("GET", path, "ana", "")
	second.is(t, 200, "revision", "2", "attachments.2.name", "more.txt", "attachments.4", "")
	w.model.Then(acts)
	w.send("POST", path+"/execute", "ana", `{"planHash":"`+second.at("planHash")+`"}`).is(t, 202)
	w.push()
	w.gets(b64(offer), b64(report), b64("Even more."), b64("At last."))
	for i, data := range []string{offer, report, "Even more.", "At last."} {
		got := w.send("GET", fmt.Sprintf("/api/agent/runs/%s/attachments/%d", a.at("sessionId"), i+1), "ana", "")
		if got.StatusCode != http.StatusOK || string(got.body) != data {
			t.Errorf("file %d: %s with %d bytes", i+1, got.Status, len(got.body))
		}
	}
	w.forgets(a.at("sessionId"), a.at("threadId"), first, last)
}

// forgets deletes a session's conversation, and checks that its files are gone.
func (w *env) forgets(id, threadID string, uploads ...string) {
	w.t.Helper()
	w.send("POST", "/api/agent/runs/"+id+"/cancel", "ana", `{}`).is(w.t, http.StatusOK)
	w.push()
	paths := attachment.Paths(id, attachment.MaxParts)
	before, err := w.store.Get(w.t.Context(), paths...)
	if err != nil || !before[3].Exists() {
		w.t.Fatalf("the session has no files: %v", err)
	}
	w.send("DELETE", "/api/agent/threads/"+threadID, "ana", "").is(w.t, http.StatusOK)
	after, err := w.store.Get(w.t.Context(), paths...)
	if err != nil || slices.ContainsFunc(after, store.Doc.Exists) {
		w.t.Errorf("files are left: %v", err)
	}
	for _, u := range uploads {
		w.send("POST", "/api/agent/run", "ana", with("x", u)).is(w.t, 400, "error.field", "attachments[0].fileId")
	}
}

// gets checks that the model's newest request has the parts.
func (w *env) gets(parts ...string) {
	w.t.Helper()
	sent := w.asked()
	for _, part := range parts {
		if !strings.Contains(sent, part) {
			w.t.Errorf("the model did not get %.60s in %d bytes", part, len(sent))
		}
	}
}

// TestFilesOfAPlanRefused has wrong files, with their field.
func TestFilesOfAPlanRefused(t *testing.T) {
	w := newPlansWithFiles(t)
	half := strings.Repeat("a", attachment.MaxBytes/2)
	w.model.Then(proposes("Tell him"))
	id := w.send("POST", plansPath, "ana", wish(files(attached("half.txt", half)))).at("sessionId")
	w.push()
	for more, field := range map[string]string{
		files(attached("a.docx", "PK\x03\x04")):                                       "attachments[0].data",
		files(attached("a.txt", "a"), `{"name":"b"}`):                                 "attachments[1].data",
		files(`{"fileId":"x"}`):                                                       "attachments[0].fileId",
		files(`{"fileId":"` + strings.Repeat("a", 26) + `"}`):                         "attachments[0].fileId",
		files(strings.Split(strings.Repeat(attached("a", "a")+" ", 17), " ")[:17]...): "attachments",
	} {
		w.send("POST", plansPath, "ana", wish(more)).is(t, 400, "error.field", field)
		w.send("POST", plansPath+"/"+id+"/refine", "ana", refinement("x", more)).is(t, 400, "error.field", field)
	}
	tooMany := strings.Split(strings.Repeat(attached("a", "a")+" ", 16), " ")[:16]
	for _, more := range []string{files(tooMany...), files(attached("b", half+"b"))} { // with those of the wish
		w.send("POST", plansPath+"/"+id+"/refine", "ana", refinement("x", more)).
			is(t, 400, "error.field", "attachments")
	}
	w.send("GET", plansPath+"/"+id, "ana", "").is(t, 200, "status", "AWAITING_CONFIRMATION", "attachments.1", "")
}

// TestFilesOfAPlanNeedApproval has a user who always allows e-mails to bob. In a session with a file, and in a session
// whose conversation had one, each of them needs approval.
func TestFilesOfAPlanNeedApproval(t *testing.T) {
	for name, c := range map[string]struct{ first, wish, refine, origin string }{
		"no file":     {},
		"in the wish": {wish: files(attached("offer.pdf", offer)), origin: "the file offer.pdf"},
		"in the refinement": {refine: files(attached("offer.pdf", offer)),
			origin: "the file offer.pdf"},
		"in an earlier prompt":           {first: "offer.pdf", origin: "a file of an earlier message"},
		"in a session that it continues": {first: "continue", origin: "a file of an earlier message"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPlansWithFiles(t)
			w.wants("hello")
			w.resolve(w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob hello"}`),
				"approve_and_always_allow_recipient")
			thread := ""
			switch c.first {
			case "":
			case "continue":
				thread = `,"continueFrom":"` + w.ended(attached("offer.pdf", offer)) + `"`
			default:
				w.model.Then(script.Turn{Text: "Read."})
				a := w.send("POST", "/api/agent/run", "ana", with("read", attached(c.first, offer)))
				thread = `,"threadId":"` + a.at("threadId") + `"`
			}
			if c.first != "continue" { // which proposes the unfinished tasks itself
				w.model.Then(proposes("Tell him"))
			}
			id := w.send("POST", plansPath, "ana", wish(c.wish+thread)).at("sessionId")
			w.push()
			path := plansPath + "/" + id
			w.model.Then(proposes("Write to him"))
			w.send("POST", path+"/refine", "ana", refinement("in writing", c.refine)).is(t, 202)
			w.push()
			w.model.Then(calls("mail", `{"to":["bob@x.org"],"text":"tell bob","reasoning":"Bob is to know."}`), ends)
			w.send("POST", path+"/execute", "ana",
				`{"planHash":"`+w.send("GET", path, "ana", "").at("planHash")+`"}`).is(t, 202)
			w.push()
			a := w.send("GET", path, "ana", "")
			if c.origin == "" {
				a.is(t, 200, "approvals.0.tool", "", "status", "COMPLETED")
				return
			}
			a.is(t, 200, "approvals.0.tool", "mail")
			if !strings.Contains(string(a.body), `"origin":"`+c.origin+`"`) {
				t.Errorf("the approval does not name %s: %s", c.origin, a.body)
			}
		})
	}
}

// ended returns a session with the file whose user has cancelled it before its plan was confirmed.
func (w *env) ended(file string) (id string) {
	w.t.Helper()
	w.model.Then(proposes("Tell him"))
	id = w.send("POST", plansPath, "ana", wish(files(file))).at("sessionId")
	w.push()
	w.send("POST", "/api/agent/runs/"+id+"/cancel", "ana", `{}`).is(w.t, http.StatusOK)
	w.push()
	w.send("GET", plansPath+"/"+id, "ana", "").is(w.t, http.StatusOK, "status", "FAILED")
	return id
}
