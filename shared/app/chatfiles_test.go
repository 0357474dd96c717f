package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// page is a page whose user sends files to the agent.
type page struct {
	*filed
	last    fakegemini.Request
	history json.RawMessage
}

// newPage has a model that clicks once for each message about a click.
func newPage(w *filed) *page {
	p := &page{filed: w}
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		p.last = r
		if len(r.Responses()) == 0 && strings.Contains(r.User(), "click") {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "click-x", Args: map[string]any{}}}}
		}
		return fakegemini.Turn{Text: "Read."}
	})
	return p
}

// says sends a message with files, and the results of the calls in the answer.
func (p *page) says(uid, message string, files ...string) testkit.Answer {
	p.t.Helper()
	a := p.as(uid, chatPath, fmt.Sprintf(`{"message":%q,"attachments":[%s],"history":%s,"toolDefinitions":%s}`,
		message, strings.Join(files, ","), p.kept(), clickTool))
	if a.Type == "tool-calls" {
		a = p.as(uid, chatPath+"/results", fmt.Sprintf(
			`{"results":[{"callId":%q,"result":"{}"}],"history":%s,"toolDefinitions":%s}`, a.Calls[0].ID, a.History,
			clickTool))
	}
	if a.Type == "response" {
		p.history = a.History
	}
	return a
}

func (p *page) kept() string {
	if p.history == nil {
		return "[]"
	}
	return string(p.history)
}

// saw returns the files in the last request to the model.
func (p *page) saw() (files []string) {
	p.t.Helper()
	for _, raw := range p.last.Raw {
		var content struct {
			Parts []struct{ InlineData struct{ Data []byte } }
		}
		if err := json.Unmarshal(raw, &content); err != nil {
			p.t.Fatal(err)
		}
		for _, part := range content.Parts {
			if len(part.InlineData.Data) > 0 {
				files = append(files, string(part.InlineData.Data))
			}
		}
	}
	return files
}

// sees checks the files in the last request to the model.
func (p *page) sees(when string, want ...string) {
	p.t.Helper()
	if got := p.saw(); !slices.Equal(got, want) {
		p.t.Errorf("%s: the model got %d files, want %d", when, len(got), len(want))
	}
}

// TestFilesOfPage sends an uploaded file and one in the request to a page's agent. The model gets both in each
// request of the conversation, until they are deleted, and the history that the page keeps has neither.
func TestFilesOfPage(t *testing.T) {
	realpart.Unraced(t)
	onFileStores(t, func(t *testing.T, w *filed) {
		p := newPage(w)
		offer := bytes.Repeat([]byte("The offer costs 1,200 euros.\n"), 3<<20/29)
		u := w.upload(t, "ana", "offer.txt", offer)
		uploaded := fmt.Sprintf(`{"fileId":%q}`, u.FileID)
		const note = "Only 900 for friends."
		inline := fmt.Sprintf(`{"name":"note.txt","data":%q}`, base64.StdEncoding.EncodeToString([]byte(note)))
		if a := p.says("ana", "click on it", uploaded); a.Type != "response" {
			t.Fatalf("%d %s", a.HTTP, a.Body)
		}
		p.sees("after a page's result", string(offer))
		if a := p.says("ana", "and this?", inline); a.Type != "response" {
			t.Fatalf("%d %s", a.HTTP, a.Body)
		}
		p.sees("with another file", string(offer), note)
		p.says("ana", "which is cheaper?")
		p.sees("with another message", string(offer), note)
		if text := string(p.last.Raw[len(p.last.Raw)-3]) + p.kept(); len(p.history) > 8<<10 ||
			strings.Contains(text, "euros") {
			t.Errorf("the page keeps %d bytes", len(p.history))
		}
		w.wants(t, 2, "after the messages")
		for what, file := range map[string]string{"another user's file": uploaded, "no file": `{"fileId":"` +
			strings.Repeat("a", 26) + `"}`} {
			a := w.as("ben", chatPath, `{"message":"read","attachments":[`+file+`]}`)
			if a.HTTP != http.StatusBadRequest || a.Error.Field != "attachments[0].fileId" {
				t.Errorf("%s: %d %s", what, a.HTTP, a.Body)
			}
		}
		now := w.App.API.Records
		later := *now
		later.Now = func() time.Time { return w.now().Add(attachment.Unused + time.Hour) }
		w.App.API.Records = &later
		w.sweep(t)
		w.App.API.Records = now
		w.wants(t, 0, "a day later")
		if a := p.says("ana", "what did it cost?"); a.Type != "response" {
			t.Fatalf("%d %s", a.HTTP, a.Body)
		}
		p.sees("a day later")
		if text := string(bytes.Join(asBytes(p.last.Raw), nil)); strings.Count(text, "was deleted") != 2 {
			t.Errorf("the model is not told that both files are gone: %s", text)
		}
	})
}

func asBytes(raw []json.RawMessage) (all [][]byte) {
	for _, r := range raw {
		all = append(all, r)
	}
	return all
}

// TestFilesOfPageRefused has files that no page may send.
func TestFilesOfPageRefused(t *testing.T) {
	onFileStores(t, func(t *testing.T, w *filed) {
		p := newPage(w)
		for file, field := range map[string]string{
			`{"name":"a.zip","data":"UEsDBA=="}`:           "attachments[0].data",
			`{"name":"a.txt","data":"?"}`:                  "attachments[0].data",
			`{"name":"a.txt","data":"YQ==","fileId":"x"}`:  "attachments[0].fileId",
			`{"data":"YQ=="}`:                              "attachments[0].name",
			`{"name":"a.txt","data":"YQ==","path":"/etc"}`: "attachments/0/path",
		} {
			if a := p.says("ana", "read", file); a.HTTP != http.StatusBadRequest || a.Error.Field != field {
				t.Errorf("%s: %d %s", file, a.HTTP, a.Body)
			}
		}
	})
}
