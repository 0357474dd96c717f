package api

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/agui"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// recalled is the maximum number of the conversation's messages that an AG-UI client gets back.
const recalled = 100

// postAGUI serves AG-UI clients. The user's newest message starts a run; answers to interrupts and results of the
// page's tools continue one. The response streams the run until it rests. A request with none of these reloads the
// conversation and its open run.
func postAGUI(r *request) (any, error) {
	data, err := r.json()
	if err != nil {
		return nil, err
	}
	var in agui.Request
	if in.Messages, err = stream.Decode(data, &in); err != nil {
		return nil, err
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	answers, err := in.Answers()
	if err != nil {
		return nil, err
	}
	words, err := in.Words()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	switch {
	case len(answers) > 0:
		return nil, r.answerAGUI(ctx, in, answers)
	case words.Text != "":
		return nil, r.beginAGUI(ctx, in, words)
	}
	return nil, r.reloadAGUI(ctx, in)
}

// keyAGUI returns the key that makes repeated sends of one client request a single run.
func keyAGUI(threadID, runID string) string { return "agui " + threadID + " " + runID }

func (r *request) beginAGUI(ctx context.Context, in agui.Request, words agui.Words) error {
	var of chosenBody
	if bytes.HasPrefix(in.Forwarded, []byte("{")) {
		if err := strictjson.DecodeKnown(in.Forwarded, &of); err != nil {
			return fault.Within("forwardedProps", err)
		}
	}
	q := loop.StartRequest{ThreadID: clientThread(r.uid, in.ThreadID), Opens: true}
	p := loop.Prompt{Text: words.Text, Thoughts: true, PageTools: in.PageTools(), PageContext: in.Context}
	if err := r.asks(&q, &p, words.Field, of); err != nil {
		return err
	}
	if err := r.checkPageTools(ctx, p.PageTools); err != nil {
		return err
	}
	var err error
	if p.Files, err = filesIn(words.Files); err != nil {
		return err
	}
	q.Key, q.BodyHash = keyAGUI(q.ThreadID, in.RunID), hashOf(p)
	t, _, stop := r.tellingAGUI(in, run.KeyedRunID(r.uid, q.Key))
	defer stop()
	return t.ended(ctx, inMessage(words.Files, t.begin(ctx, q, p)))
}

// answerAGUI records the user's answers and streams their run. An answer that no longer counts is reported in the
// stream, so a client that shows an approval as open learns that it was decided elsewhere.
func (r *request) answerAGUI(ctx context.Context, in agui.Request, answers []agui.Answer) error {
	var decided []approval.Resolution
	for _, a := range answers {
		d, err := r.decidedAGUI(a)
		if err != nil {
			return fault.Within(a.Field, err)
		}
		decided = append(decided, d)
	}
	runID, _ := run.RunOfApproval(answers[0].ApprovalID)
	if _, _, err := r.resultsOf(ctx, in, runID); err != nil { // check every result before recording any decision
		return err
	}
	t, voice, stop := r.tellingAGUI(in, runID)
	defer stop()
	for _, d := range decided {
		_, err := r.resolve(ctx, d)
		f := fault.As(err)
		if err == nil {
			continue
		}
		if f.Status() != http.StatusConflict && f.Status() != http.StatusGone {
			return err
		}
		voice.Refuse(d.ApprovalID, f)
	}
	return t.ended(ctx, t.goOn(ctx, in, runID))
}

// decidedAGUI returns the decision that the answer makes. It must carry the hash of the arguments that the user saw.
func (r *request) decidedAGUI(a agui.Answer) (approval.Resolution, error) {
	var b resolutionBody
	if err := strictjson.DecodeKnown(a.Payload, &b); err != nil {
		return approval.Resolution{}, err
	}
	if b.ArgsHash == nil {
		return approval.Resolution{}, fault.Invalid("argsHash", "the hash of the card is required")
	}
	return b.of(r.uid, a.ApprovalID)
}

// reloadAGUI streams the run that an earlier send of this request started, or else the newest open run. A run that
// waits for results of the page's tools continues if the request brings them.
func (r *request) reloadAGUI(ctx context.Context, in agui.Request) error {
	if err := r.api.Records.CheckReader(ctx, r.uid); err != nil {
		return err
	}
	threadID := clientThread(r.uid, in.ThreadID)
	runID, over, err := r.runAGUI(ctx, in, threadID)
	if err != nil {
		return err
	}
	t, voice, stop := r.tellingAGUI(in, runID)
	defer stop()
	switch {
	case over:
		return t.ended(ctx, t.run(ctx, runID))
	case runID != "":
		return t.ended(ctx, t.goOn(ctx, in, runID))
	}
	messages, err := r.messagesAGUI(ctx, threadID, "")
	if err == nil {
		voice.Idle(messages)
	}
	return err
}

// runAGUI returns the ID of the run to stream for a request without a message, or "". over reports that the run can
// wait for nothing more.
func (r *request) runAGUI(ctx context.Context, in agui.Request, threadID string) (runID string, over bool, err error) {
	runID = run.KeyedRunID(r.uid, keyAGUI(threadID, in.RunID))
	if _, _, err := r.api.Loop.Get(ctx, r.uid, runID); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return runID, false, err
	}
	runID, newest, err := r.api.Records.NewestRuns(ctx, r.uid, threadID)
	if err != nil || runID != "" || newest == "" {
		return runID, false, err
	}
	_, had, err := r.resultsOf(ctx, in, newest)
	if !had { // an earlier try of this request may have brought the results that ended the run
		newest = ""
	}
	return newest, had, err
}

// tellingAGUI returns the streamer of the run for this response, and its AG-UI encoder. stop ends the stream.
func (r *request) tellingAGUI(in agui.Request, runID string) (t runStream, voice *agui.Encoder, stop func()) {
	out, stop := r.events([2]string{}, "")
	voice = agui.NewEncoder(in, func(e agui.Event) { out.write(e) })
	threadID := clientThread(r.uid, in.ThreadID)
	t = runStream{r: r, out: out, to: stream.New(runID, threadID, nil, voice)}
	t.to.Load = r.load(runID)
	t.recall = func(ctx context.Context, runID string) error {
		messages, err := r.messagesAGUI(ctx, threadID, runID)
		voice.Recall(messages)
		return err
	}
	return t, voice, stop
}

// messagesAGUI returns the newest messages of the conversation. It omits the assistant's messages of the run runID,
// which the client streams separately.
func (r *request) messagesAGUI(ctx context.Context, threadID, runID string) ([]agui.Message, error) {
	page, err := r.api.Records.Messages(ctx, r.uid, threadID, math.MaxInt64, recalled)
	if err != nil && !fault.Is(err, fault.Auth, fault.CodeNotFound) { // the conversation is still empty
		return nil, err
	}
	messages := []agui.Message{}
	for _, m := range page.Messages {
		if m.Role == run.RoleUser || m.RunID != runID {
			messages = append(messages, agui.Message{ID: threadID + "-" + strconv.FormatInt(m.Seq, 10),
				Role: string(m.Role), Content: m.Text})
		}
	}
	return messages, nil
}
