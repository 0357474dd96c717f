package agui_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/agui"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// read returns what a request asks for, or the field that is wrong.
func read(body string) (says string, err error) {
	var r agui.Request
	if err := strictjson.DecodeKnown([]byte(body), &r); err != nil {
		return "", err
	}
	if err := r.Check(); err != nil {
		return "", err
	}
	answers, err := r.Answers()
	if err != nil {
		return "", err
	}
	words, err := r.Words()
	if err != nil {
		return "", err
	}
	for _, f := range words.Files {
		says += fmt.Sprintf("%s %q %s; ", f.Field, f.Name, f.Data)
	}
	for _, t := range r.PageTools() {
		says += fmt.Sprintf("%s %s; ", t.Name, t.Schema)
	}
	for _, c := range r.Context {
		says += fmt.Sprintf("%s is %s; ", c.Description, c.Value)
	}
	for _, one := range r.Results() {
		text, err := one.Text()
		if err != nil {
			return "", err
		}
		says += fmt.Sprintf("%s %s %t %s; ", one.Field, one.CallID, one.Failed, text)
	}
	for _, a := range answers {
		says += fmt.Sprintf("%s %s %s; ", a.Field, a.ApprovalID, a.Payload)
	}
	return strings.TrimSpace(says + words.Field + " " + words.Text), nil
}

const someRun = "abcdefghijklmnop"

// said is a message of the user's. answered is a list of answers to interrupts.
func said(content string) string { return `"messages":[{"role":"user","content":` + content + `}]` }

func answered(interrupts ...string) string {
	for i, of := range interrupts {
		id, status, _ := strings.Cut(of, " ")
		interrupts[i] = fmt.Sprintf(`{"interruptId":%q,"status":%q,"payload":{}}`, id, status)
	}
	return `"resume":[` + strings.Join(interrupts, ",") + `]`
}

// returned is a conversation with tool results after the user's message.
func returned(messages string) string {
	return `"messages":[{"role":"tool","toolCallId":"old","content":"1"},{"role":"user","content":"go"},` + messages + `]`
}

// requests are inputs without IDs, by their special property, with the expected request.
var requests = map[string]struct{ body, want string }{
	"words": {said(`"one"`), "messages/0/content one"},
	"in parts": {said(`[{"type":"text","text":"one"},{"type":"text","text":"two"}]`),
		"messages/0/content one\n\ntwo"},
	"the newest": {`"messages":[{"role":7},{"role":"user","content":"one"}]`, "messages/1/content one"},
	"before the developer's": {`"messages":[{"role":"user","content":"one"},{"role":"system","content":"x"},` +
		`{"role":"developer","content":"Be brief."}]`, "messages/0/content one"},
	"the system's alone": {`"messages":[{"role":"system","content":"Be brief."}]`, ""},
	"nothing new":        {`"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]`, ""},
	"no messages":        {`"unheardOf":1`, ""},
	"blank words":        {said(`" \n"`), "messages/0/content"},
	"no such part":       {said(`[{"type":"text","text":"x"},{"type":"hologram"}]`), "messages/0/content/1"},
	"an image": {said(`[{"type":"image","source":{"type":"data","value":"YQ==","mimeType":"image/png"},` +
		`"metadata":{"filename":"a.png"}},{"type":"text","text":"x"}]`),
		`messages/0/content/0/source/value "a.png" a; messages/0/content x`},
	"a document of 0.0.59": {said(`[{"type":"text","text":"x"},{"type":"document","source":{"type":"url",` +
		`"value":"data:text/csv,a%3Bb"},"metadata":7}]`),
		`messages/0/content/1/source/value "" a;b; messages/0/content x`},
	"a binary": {said(`[{"type":"text","text":"x"},{"type":"binary","mimeType":"text/plain","data":"YQ","filename":"a"}]`),
		`messages/0/content/1/data "a" a; messages/0/content x`},
	"a data URL as data": {said(`[{"type":"text","text":"x"},{"type":"binary","data":"data:text/plain;base64,YQ=="}]`),
		`messages/0/content/1/data "" a; messages/0/content x`},
	"a file elsewhere": {said(`[{"type":"audio","source":{"type":"url","value":"https://x.example/a"}}]`),
		"messages/0/content/0/source/value"},
	"a file of a provider": {said(`[{"type":"video","source":{"type":"file","value":"files/1","provider":"google"}}]`),
		"messages/0/content/0/source/type"},
	"a binary of an id": {said(`[{"type":"binary","mimeType":"image/png","id":"f1"}]`), "messages/0/content/0/data"},
	"a file alone":      {said(`[{"type":"binary","data":"YQ=="}]`), "messages/0/content"},
	"no text":           {said(`7`), "messages/0/content"},
	"an answer":         {answered(someRun + "-1 resolved"), "resume/0/payload " + someRun + "-1 {};"},
	"cancelled":         {answered(someRun + "-1 cancelled"), ""},
	"of no status":      {answered(someRun + "-1 x"), "resume/0/status"},
	"no interrupt":      {answered("x resolved"), "resume/0/interruptId"},
	"to two runs":       {answered(someRun+"-1 resolved", "q"+someRun+"-1 resolved"), "resume/1/interruptId"},
	"too many":          {answered(slices.Repeat([]string{someRun + "-1 resolved"}, 101)...), "resume"},
	"a tool's result": {returned(`{"role":"assistant"},{"role":"tool","toolCallId":"a","content":"1"}`),
		"messages/3/content a false 1;"},
	"two of them": {returned(`{"role":"tool","toolCallId":"a","content":"1"},` +
		`{"role":"tool","toolCallId":"b","content":[{"type":"text","text":"2"}],"error":""}`),
		"messages/3/content b false 2; messages/2/content a false 1;"},
	"a tool's error": {returned(`{"role":"tool","toolCallId":"a","content":"","error":"no"}`),
		"messages/2/error a true no;"},
	"a result before words": {returned(`{"role":"tool","toolCallId":"a"},{"role":"user","content":"on"}`),
		"messages/3/content on"},
	"a file as a result": {returned(`{"role":"tool","toolCallId":"a","content":[{"type":"binary","data":"YQ=="}]}`),
		"messages/2/content/0"},
	"a result that is no text": {returned(`{"role":"tool","toolCallId":"a","content":{}}`), "messages/2/content"},
	"tools": {`"tools":[{"name":"a","description":"b","parameters":{"type":"object"},"metadata":{}},{"name":"c"}]`,
		`a {"type":"object"}; c {"type":"object"};`},
	"no tools":           {`"tools":null`, ""},
	"a tool's name":      {`"tools":[{"name":7}]`, "tools/0/name"},
	"tools in no list":   {`"tools":{}`, "tools"},
	"context":            {`"context":[{"description":"a","value":"b","more":1},{"value":"c"}]`, "a is b;  is c;"},
	"no context":         {`"context":null`, ""},
	"context of no text": {`"context":[{"value":"a"},{"value":{}}]`, "context/1/value"},
	"context of a text":  {`"context":"a"`, "context"},
	"a long thread":      {`"threadId":"` + strings.Repeat("x", 257) + `"`, "threadId"},
}

// body adds IDs to an input that has none.
func body(of string) string {
	if !strings.Contains(of, "threadId") {
		of = `"threadId":"t",` + of
	}
	return `{"runId":"r",` + of + `}`
}

func TestRequest(t *testing.T) {
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			got, err := read(body(c.body))
			if err != nil {
				got = fault.As(err).Field
			}
			if got != c.want {
				t.Errorf("got %q, want %q (%v)", got, c.want, err)
			}
		})
	}
}

// FuzzRequest checks that any input either asks for something bounded, for one run, or is refused with its field.
func FuzzRequest(f *testing.F) {
	for _, c := range requests {
		f.Add(body(c.body))
	}
	f.Fuzz(func(t *testing.T, sent string) {
		var r agui.Request
		if strictjson.DecodeKnown([]byte(sent), &r) != nil {
			return
		}
		answers, err := r.Answers()
		if err != nil && fault.As(err).Class != fault.Validation {
			t.Errorf("%v", err)
		}
		for _, a := range answers {
			one, _ := run.RunOfApproval(a.ApprovalID)
			if first, ok := run.RunOfApproval(answers[0].ApprovalID); !ok || one != first {
				t.Errorf("it answers %s and %s", answers[0].ApprovalID, a.ApprovalID)
			}
		}
		newest := len(r.Messages)
		for _, one := range r.Results() {
			at, err := strconv.Atoi(strings.Split(one.Field, "/")[1])
			if err != nil || at >= newest {
				t.Errorf("%s comes after that of message %d", one.Field, newest)
			}
			newest = at
			if _, err := one.Text(); err != nil && !strings.HasPrefix(fault.As(err).Field, one.Field) {
				t.Errorf("%s: %v", one.Field, err)
			}
		}
		if n := len(r.PageTools()); n != len(r.Tools) {
			t.Errorf("%d tools are %d", len(r.Tools), n)
		}
		words, err := r.Words()
		switch {
		case err != nil && (fault.As(err).Class != fault.Validation || fault.As(err).Field == ""):
			t.Errorf("%v", err)
		case err == nil && words.Field != "" && visible.Blank(words.Text):
			t.Errorf("%s has no words", words.Field)
		case err == nil && words.Field != "" &&
			words.Field != fmt.Sprintf("messages/%d/content", stream.Newest(r.Messages)):
			t.Errorf("%s is not the newest", words.Field)
		}
	})
}
