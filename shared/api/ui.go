package api

import (
	"context"
	"net/http"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/api/ui"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// postUI serves the AI SDK's useChat. The user's newest message starts a run, or answers what a run has asked. The
// response streams the run until it rests.
func postUI(r *request) (any, error) {
	data, err := r.json()
	if err != nil {
		return nil, err
	}
	var in struct {
		ui.Request
		chosenBody
	}
	if in.Messages, err = stream.Decode(data, &in); err != nil {
		return nil, err
	}
	newest, err := in.Newest()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	if err := r.answerEarlierUI(ctx, in.Earlier()); err != nil {
		return nil, err
	}
	if len(newest.Answers) > 0 {
		return nil, r.answerUI(ctx, newest.Answers)
	}
	q := loop.StartRequest{ThreadID: clientThread(r.uid, in.ID), Opens: true}
	p := loop.Prompt{Text: newest.Words, Thoughts: true}
	if err := r.asks(&q, &p, "messages", in.chosenBody); err != nil {
		return nil, err
	}
	if p.Files, err = filesIn(newest.Files); err != nil {
		return nil, err
	}
	q.BodyHash = hashOf(p)
	q.Key = clientKey(q.ThreadID, newest.ID, q.BodyHash)
	t, stop := r.tellingUI(run.KeyedRunID(r.uid, q.Key), q.ThreadID, nil)
	defer stop()
	return nil, t.ended(ctx, inMessage(newest.Files, t.begin(ctx, q, p)))
}

// answerEarlierUI records the answers in older messages. useChat marks an older card as answered but sends nothing, so
// the answer arrives with the next message. An answer that no longer decides anything is ignored as history.
func (r *request) answerEarlierUI(ctx context.Context, answers []ui.Answer) error {
	for _, a := range answers {
		if len(a.Comment) > maxComment {
			continue
		}
		_, err := r.resolve(ctx, r.resolutionUI(a))
		if err != nil && !late(err) && !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			return err
		}
	}
	return nil
}

func (r *request) resolutionUI(a ui.Answer) approval.Resolution {
	d := run.Reject
	if a.Approved {
		d = run.ApproveOnce
	}
	return approval.Resolution{UID: r.uid, ApprovalID: a.ApprovalID, Decision: d, ArgsHash: a.ArgsHash,
		Comment: a.Comment}
}

// answerUI records the user's answers and streams their run.
func (r *request) answerUI(ctx context.Context, answers []ui.Answer) error {
	var decided []approval.Resolution
	var ids []string
	for _, a := range answers {
		if len(a.Comment) > maxComment {
			return fault.Invalid(a.Field+"/reason", "the comment is longer than %d bytes", maxComment)
		}
		ids = append(ids, a.ApprovalID)
		decided = append(decided, r.resolutionUI(a))
	}
	v, refused := r.resolveAll(ctx, decided)
	if v == nil {
		return refused
	}
	t, stop := r.tellingUI(v.RunID, v.ThreadID, ids)
	defer stop()
	err := t.run(ctx, v.RunID)
	if err == nil {
		err = refused
	}
	return t.ended(ctx, err)
}

// getUIStream streams the newest open run of a client's conversation, from its beginning.
func getUIStream(r *request) (any, error) {
	id := r.PathValue("threadId")
	if err := stream.CheckID("threadId", id); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), r.api.Budget)
	defer cancel()
	threadID := clientThread(r.uid, id)
	runID, _, err := r.api.Records.NewestRuns(ctx, r.uid, threadID)
	if err != nil {
		return nil, err
	}
	if runID == "" {
		r.w.WriteHeader(http.StatusNoContent)
		return nil, nil
	}
	t, stop := r.tellingUI(runID, threadID, nil)
	defer stop()
	return nil, t.ended(ctx, t.run(ctx, runID))
}

// tellingUI returns the streamer of the run for a client of the AI SDK. stop ends the stream if it has begun.
func (r *request) tellingUI(runID, threadID string, answered []string) (t runStream, stop func()) {
	out, stop := r.events([2]string{ui.VersionHeader, ui.Version}, ui.Done)
	to := stream.New(runID, threadID, answered, ui.Message(func(c ui.Chunk) { out.write(c) }))
	to.Load = r.load(runID)
	return runStream{r: r, out: out, to: to}, stop
}
