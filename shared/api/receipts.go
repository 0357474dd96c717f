package api

import (
	"context"
	"net/http"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
)

// Receipts signs receipts, and returns the public keys that verify them.
type Receipts interface {
	Issue(ctx context.Context, r receipt.Receipt) ([]byte, error)
	Keys(ctx context.Context) (receipt.Keys, error)
}

// getReceipt answers with the signed receipt of the run in its current state. The body is the signed bytes, then a line
// feed.
func getReceipt(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	if r.api.Receipts == nil {
		return nil, errNoSuchPath()
	}
	v, events, err := r.api.Loop.Get(r.Context(), r.uid, id)
	if err != nil {
		return nil, err
	}
	if err := loop.AddRecords(r.Context(), r.api.Loop, r.uid, v, events, false); err != nil {
		return nil, err
	}
	stored, found, err := r.api.Records.Run(r.Context(), id)
	if err != nil || !found {
		return nil, fault.OrNotFound(err) // deleted since the first read
	}
	details, err := r.api.Records.RunDetails(r.Context(), stored)
	if err != nil {
		return nil, err
	}
	entries, _, err := r.api.Records.Chain(r.Context(), id)
	if err != nil {
		return nil, err
	}
	made := receipt.New(stored, v, details.State.Input.Prompt, details.Approvals, entries, r.api.Loop.Now())
	file, err := r.api.Receipts.Issue(r.Context(), made)
	if err != nil {
		return nil, unsigned(err)
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", `attachment; filename="receipt-`+id+`.json"`)
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(append(file, '\n')) // a disconnected client is not an error
	return nil, nil
}

// getKeys answers with the public keys. The list is empty if receipts are not configured.
func getKeys(r *request) (any, error) {
	if r.api.Receipts == nil {
		return receipt.Keys{Keys: []receipt.Key{}}, nil
	}
	keys, err := r.api.Receipts.Keys(r.Context())
	if err != nil {
		return nil, unsigned(err)
	}
	return keys, nil
}

// unsigned returns the error for a key that could not be used.
func unsigned(err error) error {
	return fault.New(fault.Tool, fault.CodeStoreUnavailable, "The receipt cannot be signed now.").Because(err)
}
