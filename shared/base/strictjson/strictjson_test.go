package strictjson

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
)

type body struct {
	Prompt   string   `json:"prompt"`
	Decision string   `json:"decision"`
	List     []string `json:"list"`
}

func TestDecodeRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "space": " \n", "null": "null", "string": `"x"`, "array": `[]`, "number": "1",
		"second value": `{"prompt":"x"} {}`, "trailing text": `{"prompt":"x"}x`,
		"byte order mark": "\ufeff{\"prompt\":\"x\"}",
		"unknown":         `{"uid":"b"}`, "duplicate": `{"prompt":"a","prompt":"b"}`,
		"case variant": `{"decision":"reject","DECISION":"approve_once"}`,
		"long s":       "{\"deci\u017fion\":\"approve_once\"}", "type": `{"prompt":1}`,
		"list for a string": `{"prompt":["x"]}`,
		"string for a list": `{"list":"a"}`, "lone surrogate": `{"prompt":"a\ud800"}`,
		"bad UTF-8":     "{\"prompt\":\"a\xff\"}",
		"single quotes": `{'prompt':'x'}`, "comment": `{"prompt":"x"/**/}`, "cut": `{"prompt":"x"`,
		"depth":     `{"prompt":"x","list":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}",
		"many keys": `{"prompt":"x"` + strings.Repeat(`,"a":1`, 5000) + "}",
	} {
		var b body
		err := Decode([]byte(in), &b)
		if e := fault.As(err); err == nil || e.Class != fault.Validation {
			t.Errorf("%s: got %v, want a ValidationError", name, err)
		}
	}
}

func TestDecodeErrorField(t *testing.T) {
	long := strings.Repeat("a", 79)
	for in, want := range map[string]string{
		`{"uid":"b"}`: "uid", `{"prompt":1}`: "prompt", `{"list":["a",2]}`: "list/1",
		`{"prompt":"a","prompt":"b"}`: "prompt",
		`{"` + long + `é":1}`:         long[:74] + " […]",
	} {
		var b body
		if got := fault.As(Decode([]byte(in), &b)).Field; got != want {
			t.Errorf("%s: field %q, want %q", in, got, want)
		}
	}
}
