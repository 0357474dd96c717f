package tool

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// FinalAnswer is the name of the tool of [Answer].
const FinalAnswer = "final_answer"

// AnswerTaken is the result of a call of that tool: its arguments are what counts.
var AnswerTaken = json.RawMessage(`{"received":true}`)

// maxAnswerSchema is how long the schema of an answer may be, in bytes.
const maxAnswerSchema = 64 << 10

// Answer returns the tool by which a run gives its answer: the arguments of a call that fits the JSON Schema, of an
// object, are the answer, and end the run. A schema that is unusable is a ValidationError.
func Answer(schema json.RawMessage) (*Tool, error) {
	if len(schema) > maxAnswerSchema {
		return nil, fault.Invalid("answer", "the schema has %d bytes; the limit is %d", len(schema),
			maxAnswerSchema)
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(schema, s); err != nil {
		return nil, fault.Invalid("answer", "this is no JSON Schema").Because(err)
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
