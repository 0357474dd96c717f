package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/api/ui"
	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestNewest(t *testing.T) {
	const (
		words = `{"id":"m1","role":"user","parts":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`
		runID = "abcdefghijklmnop"
	)
	answer := func(id string, approved string) string {
		return fmt.Sprintf(`{"type":"dynamic-tool","state":"approval-responded","approval":{"id":%q,"approved":%s}}`, id,
			approved)
	}
	asked := func(parts ...string) string {
		return `{"id":"m2","role":"assistant","parts":[{"type":"step-start"},` + strings.Join(parts, ",") + `]}`
	}
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for name, c := range map[string]struct{ id, messages, want string }{
		"a yes beside the output of a tool": {messages: asked(`{"type":"tool-x","state":"output-available","output":`+
			deep+`,"approval":"x","url":7}`, answer(runID+"-1~h", "true")), want: "[" + runID + "-1 h true]"},
		"words beside anything": {messages: `{"id":"m1","role":"user","metadata":` + deep + `,"createdAt":{"a":1,"a":2},` +
			`"parts":[{"type":"data-x","text":[],"data":` + deep + `},null,{"type":"text","text":"one",` +
			`"providerMetadata":{"\ud83d":1e999}}]}`, want: "m1 one []"},
		"words twice": {messages: `{"id":"m1","role":"user","parts":[{"type":"text","text":"one","text":"two"}]}`,
			want: "messages/0/parts/0/text"},
		"words": {messages: words, want: "m1 one\n\ntwo []"},
		"words after all else": {messages: asked(answer(runID+"-1~h", "true")) + "," + words,
			want: "m1 one\n\ntwo []"},
		"what is no message yet": {messages: `{"role":7},` + words, want: "m1 one\n\ntwo []"},
		"a yes": {messages: words + "," + asked(answer(runID+"-1~h", "true")),
			want: "[" + runID + "-1 h true]"},
		"a no and a yes": {messages: asked(answer(runID+"-1~h", "false"), answer(runID+"-2~k", "true")),
			want: "[" + runID + "-1 h false " + runID + "-2 k true]"},
		"a yes and a no to one card": {messages: asked(answer(runID+"-1~h", "true"), answer(runID+"-1~h", "false"),
			answer(runID+"-1~h", "true")), want: "[" + runID + "-1 h false]"},
		"an answer that was not given": {messages: asked(answer(runID+"-1~h", "true"),
			`{"type":"dynamic-tool","state":"approval-requested","approval":{"id":"`+runID+`-2~k"}}`),
			want: "[" + runID + "-1 h true]"},
		"no conversation": {id: "-", messages: words, want: "id"},
		"a long id":       {id: strings.Repeat("x", 257), messages: words, want: "id"},
		"no messages":     {want: "messages"},
		"no words": {messages: `{"id":"m1","role":"user","parts":[{"type":"text","text":" \n"}]}`,
			want: "messages/0/parts"},
		"no id": {messages: `{"role":"user","parts":[{"type":"text","text":"x"}]}`, want: "messages/0/id"},
		"a file": {messages: `{"id":"m1","role":"user","parts":[{"type":"text","text":"x"},{"type":"file",` +
			`"mediaType":"text/plain","filename":"a.txt","url":"data:text/plain;base64,YQ=="}]}`, want: "m1 x [a.txt: a]"},
		"words of version 4": {messages: `{"id":"m1","role":"user","content":"one"}`, want: "m1 one []"},
		"words of both": {messages: `{"id":"m1","role":"user","content":"one","parts":[{"type":"text","text":"one"}]}`,
			want: "m1 one []"},
		"files of version 4": {messages: `{"id":"m1","role":"user","content":"x","experimental_attachments":[{"name":` +
			`"a.txt","contentType":"text/plain","url":"data:text/plain;base64,YQ=="}],"parts":[{"type":"file",` +
			`"mimeType":"text/plain","data":"Yg=="}]}`, want: "m1 x [: b a.txt: a]"},
		"an attachment elsewhere": {messages: `{"id":"m1","role":"user","content":"x","experimental_attachments":` +
			`[{"url":"https://x.example/a"}]}`, want: "messages/0/experimental_attachments/0/url"},
		"content that is no text": {messages: `{"id":"m1","role":"user","content":[{"type":"text","text":"x"}]}`,
			want: "messages/0/parts"},
		"a file elsewhere": {messages: `{"id":"m1","role":"user","parts":[{"type":"file","url":"https://x.example/a"}]}`,
			want: "messages/0/parts/0/url"},
		"a file alone": {messages: `{"id":"m1","role":"user","parts":[{"type":"file","url":"data:,a"}]}`,
			want: "messages/0/parts"},
		"of the system alone": {messages: `{"id":"m1","role":"system","parts":[]}`, want: "messages"},
		"of an unknown role":  {messages: `{"id":"m1","role":"data","parts":[]}`, want: "messages/0/role"},
		"words before the system's": {messages: words + `,{"id":"m2","role":"system",` +
			`"parts":[{"type":"text","text":"Be brief."}]}`,
			want: "m1 one\n\ntwo []"},
		"of another type":    {messages: `{"id":"m1","role":"user","parts":"x"}`, want: "messages/0/parts"},
		"nothing new":        {messages: words + `,{"id":"m2","role":"assistant","parts":[]}`, want: "messages/1"},
		"an unbound yes":     {messages: asked(answer(runID+"-1", "true")), want: "messages/0/parts/1/approval/id"},
		"an empty hash":      {messages: asked(answer(runID+"-1~", "true")), want: "messages/0/parts/1/approval/id"},
		"no approval at all": {messages: asked(answer("x~h", "true")), want: "messages/0/parts/1/approval/id"},
		"answers to two runs": {messages: asked(answer(runID+"-1~h", "true"), answer("q"+runID[1:]+"-1~h", "true")),
			want: "messages/0/parts/2/approval/id"},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.TrimPrefix("chat"+c.id, "chat-")
			if len(c.id) > 1 {
				id = c.id
			}
			var r ui.Request
			body := fmt.Sprintf(`{"id":%q,"messages":[%s],"unheardOf":1}`, id, c.messages)
			var err error
			if r.Messages, err = stream.Decode([]byte(body), &r); err != nil {
				t.Fatal(err)
			}
			n, err := r.Newest()
			var told []string
			for _, f := range n.Files {
				told = append(told, fmt.Sprintf("%s: %s", f.Name, f.Data))
			}
			for _, a := range n.Answers {
				told = append(told, fmt.Sprint(a.ApprovalID, " ", a.ArgsHash, " ", a.Approved))
			}
			got := strings.TrimSpace(fmt.Sprintf("%s %s %v", n.ID, n.Words, told))
			if err != nil {
				got = fault.As(err).Field
			}
			if got != c.want {
				t.Errorf("got %q, want %q (%v)", got, c.want, err)
			}
		})
	}
}
