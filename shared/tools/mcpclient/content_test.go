package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// TestResultsOfOtherForms lets a server answer in forms that the protocol does not have. A part that cannot be read
// takes away nothing from the others, and the call counts as answered.
func TestResultsOfOtherForms(t *testing.T) {
	const text = `{"type":"text","text":"a"}`
	for result, want := range map[string]string{
		`{"content":[` + text + `,{"type":"html","html":"<b>"}]}`: `{"text":"a\n{\"type\":\"html\",\"html\":\"<b>\"}"}`,
		`{"content":["plain",null,7]}`:                            `{"text":"plain\n7"}`,
		`{"content":"plain"}`:                                     `{"text":"plain"}`,
		`{"content":` + text + `}`:                                `{"text":"a"}`,
		`{"content":[{"text":"a"}]}`:                              `{"text":"a"}`,
		`{"content":[{"type":"text","text":7}]}`:                  `{"text":"{\"type\":\"text\",\"text\":7}"}`,
		`{"content":[` + text + `],"isError":"true"}`:             `{"isError":true,"text":"a"}`,
		`{"content":[` + text + `],"isError":1}`:                  `{"isError":true,"text":"a"}`,
		`{"content":[` + text + `],"isError":"false"}`:            `{"text":"a"}`,
		`{"_meta":5,"content":[{"type":"text","text":"a","_meta":"x","annotations":{"priority":"high"}}]}`:                                `{"text":"a"}`,
		`{"content":[{"type":"image","data":"!!!","mimeType":5},` + text + `]}`:                                                           `{"text":"a","others":[{"type":"image"}]}`,
		`{"content":[{"type":"resource_link","uri":"x","name":"n","size":"big"},{"type":"resource_link","uri":"y","name":"m","size":3}]}`: `{"others":[{"type":"resource_link","name":"n","uri":"x"},{"type":"resource_link","name":"m","uri":"y","bytes":3}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"x","blob":"!"}},{"type":"resource","resource":{"text":"t"}}]}`:                 `{"text":"t","others":[{"type":"resource","uri":"x"}]}`,
		`{"toolResult":{"id":9007199254740993}}`:                 `{"structured":{"id":9007199254740993}}`,
		`{"content":null,"structuredContent":{"n":1e400}}`:       `{"structured":{"n":1e400}}`,
		`{"content":[{"type":"text","text":"a","text":"b"}]}`:    `{"text":"b"}`,
		`{"content":[{"type":"audio","data":"aGk=","x":1e400}]}`: `{"others":[{"type":"audio","bytes":2,"file":"file.txt"}]}`,
	} {
		url, _ := raw(t, func(w http.ResponseWriter, method string, _ int, id json.RawMessage) {
			answer := result
			if method != "tools/call" {
				answer = `{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}`
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answer)
		})
		act := tools(t, connect(t, mcpclient.Config{URL: url}), mcpclient.Choice{})["act"]
		if got, err := call(t, act, `{}`); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", result, got, err, want)
		}
	}
}
