package tool

import (
	"context"
	"encoding/json"
)

// FinalAnswer is the name of the tool that [Answer] returns.
const FinalAnswer = "final_answer"

// AnswerTaken is the result of a call of that tool. The answer itself is the call's arguments.
var AnswerTaken = json.RawMessage(`{"received":true}`)

// answerDescription is the tool's description for the model.
const answerDescription = "Gives your answer and ends the task. Call it once, and alone, when you have all that the " +
	"answer needs; an answer in words does not count."

// Answer returns the tool with which a run gives a typed answer. schema is the JSON Schema of an object, from any
// source ([Remote]). The arguments of a call that fits it, with the schema's defaults, are the answer, and the call
// ends the run. Answer returns a ValidationError if the schema is unusable. Its field is the place in the schema.
func Answer(schema json.RawMessage) (*Tool, error) {
	t, err := remote(FinalAnswer, answerDescription, schema, true)
	if err != nil {
		return nil, inSchema(err)
	}
	t.Final, t.has.execute = true, true
	t.functions.(*declared).Execute = func(context.Context, Call) (json.RawMessage, error) { return AnswerTaken, nil }
	return t, nil
}
