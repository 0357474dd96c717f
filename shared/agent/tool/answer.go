package tool

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// FinalAnswer is the name of the tool that [Answer] returns.
const FinalAnswer = "final_answer"

// AnswerTaken is the result of a call of that tool. The answer itself is the call's arguments.
var AnswerTaken = json.RawMessage(`{"received":true}`)

// maxAnswerSchema is the maximum length of an answer's schema, in bytes.
const maxAnswerSchema = 64 << 10

// Answer returns the tool with which a run gives a typed answer. schema is the JSON Schema of an object. The arguments
// of a call that fits it are the answer, and the call ends the run. Answer returns a ValidationError if the schema is
// unusable.
func Answer(schema json.RawMessage) (*Tool, error) {
	if len(schema) > maxAnswerSchema {
		return nil, fault.Invalid("answer", "the schema has %d bytes; the limit is %d", len(schema),
			maxAnswerSchema)
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(schema, s); err != nil {
		return nil, fault.Invalid("answer", "this is not a JSON Schema").Because(err)
	}
	t, err := Declare(Declaration{Name: FinalAnswer, Final: true, Input: s,
		Description: "Gives your answer and ends the task. Call it once, and alone, when you have all that the " +
			"answer needs; an answer in words does not count.",
		Execute: func(context.Context, Call) (json.RawMessage, error) { return AnswerTaken, nil }})
	if err != nil {
		return nil, fault.Invalid("answer", "%s", err.Error())
	}
	return t, nil
}
