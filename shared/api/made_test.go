package api_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestPictureOverHTTP has a picture in the answer of a model and in the result of a tool. Each route names it or sends
// its bytes, after it was stored, and the owner reads it by its number.
func TestPictureOverHTTP(t *testing.T) {
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("p", 100)
	inURL := `data:image/png;base64,` + base64.StdEncoding.EncodeToString([]byte(picture))
	paints := script.Turn{Text: "Here.", Files: []fakegemini.File{{Type: "image/png", Data: []byte(picture)}}}
	draws := script.Turn{Calls: []script.Call{{Name: "draw"}}}
	draw := tool.Define(tool.Def[struct{}, string]{Name: "draw", Description: "Draws.", Class: tool.ClassRead,
		Execute: func(_ context.Context, c tool.Call, _ struct{}) (string, error) {
			return c.Attach([]byte(picture)), nil
		}})
	for path, c := range map[string]struct{ body, want string }{
		"/api/agent/run":        {`{"prompt":"paint"}`, `"files":[{"name":"NAME","type":"image/png","size":108,`},
		"/api/agent/run/stream": {`{"prompt":"paint"}`, `{"type":"file","runId":"`},
		"/api/agent/ui": {`{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"paint"}]}]}`,
			`{"type":"file","url":"` + inURL + `","mediaType":"image/png"}`},
		"/api/agent/agui": {`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"paint"}],` +
			`"tools":[],"context":[],"state":{},"forwardedProps":{}}`, `"url":"` + inURL + `"}}`},
	} {
		for name, turns := range map[string][]script.Turn{"answer-1.png": {paints},
			"draw-1.png": {draws, {Text: "Here."}}} {
			w := newEnv(t)
			w.loop.Tools["draw"] = draw
			w.model.Then(turns...)
			a := w.send("POST", path, "ana", c.body)
			want := strings.Replace(c.want, "NAME", name, 1)
			if a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), want) {
				t.Errorf("%s: %s %s; want %s", path, a.Status, a.body, want)
			}
			thread := w.send("GET", "/api/agent/threads", "ana", "").at("threads", "0", "threadId")
			messages := w.send("GET", "/api/agent/threads/"+thread+"/messages", "ana", "")
			id := messages.at("messages", "1", "runId")
			number := messages.at("messages", "1", "attachments", "0", "number")
			file := "/api/agent/runs/" + id + "/attachments/" + number
			got := w.send("GET", file, "ana", "")
			if string(got.body) != picture || got.Header.Get("Content-Type") != "image/png" {
				t.Errorf("%s: %s is %s %s; want the picture", path, file, got.Status, got.body)
			}
			if got := w.send("GET", file, "bob", ""); got.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s is %s for another user; want 404", path, file, got.Status)
			}
		}
	}
}
