// Package receipt makes a run's receipt: the user's request, the cards that the user saw, the decisions, and the
// executed calls, with the run's audit chain and the nonce of its hashes. A receipt is one file in canonical JSON (RFC
// 8785), signed with Ed25519. Anyone who has the public keys can detect any changed byte, without asking a server.
//
// The signature is a compact JWS (RFC 7515, EdDSA of RFC 8037). It covers a short statement in canonical JSON with the
// SHA-256 of the receipt. Cloud KMS signs at most 64 KiB with such a key, and a receipt with an e-mail can be longer.
package receipt

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// A Receipt is the signed content about one run.
type Receipt struct {
	Version  int       `json:"version"` // 1
	IssuedAt time.Time `json:"issuedAt"`

	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	User     string `json:"user"` // the subject of the user's token
	Agent    string `json:"agent"`
	// DelegatedBy is the agent of another program that started the run. Asked then contains the agent's words.
	DelegatedBy *run.Delegate `json:"via,omitempty"`
	TimeZone    string        `json:"timeZone"` // of the times in previews
	Locale      string        `json:"locale,omitempty"`
	Asked       string        `json:"asked"` // the user's words
	AskedAt     time.Time     `json:"askedAt"`
	Status      run.Status    `json:"status"`
	Summary     string        `json:"summary"`
	UpdatedAt   time.Time     `json:"updatedAt"`
	Actions     []Action      `json:"actions"`
	Plans       []Plan        `json:"plans,omitempty"` // plans that the user of a session has confirmed, in order

	Nonce   string        `json:"nonce"` // hexadecimal; of the hashes in the entries (audit.InputHash)
	Head    audit.Head    `json:"head"`  // of the run's chain
	Entries []audit.Entry `json:"entries"`
}

// An Action is one call: its final form, the cards that its user saw, and the audit entries that prove it.
type Action struct {
	*run.ActionView
	Shown   []Card  `json:"shown,omitempty"`
	Entries []int64 `json:"entries"` // their numbers in the chain
}

// A Plan is a plan that the user of a session has confirmed. It contains the grants that actions refer to.
type Plan struct {
	ApprovalID  string          `json:"approvalId"`
	Plan        json.RawMessage `json:"plan"`
	Hash        string          `json:"planHash"`
	Decision    run.Decision    `json:"decision"`
	ConfirmedAt time.Time       `json:"confirmedAt"`
}

// A Card is an approval as the user saw it, with their decision. The arguments before and after an edit are in the
// action's record.
type Card struct {
	ApprovalID  string             `json:"approvalId"`
	Kind        run.Kind           `json:"kind"`
	Preview     tool.Preview       `json:"preview"`
	Reason      string             `json:"reason,omitempty"`
	Rule        string             `json:"rule,omitempty"`
	Findings    []run.Finding      `json:"findings,omitempty"`
	RequestedAt time.Time          `json:"requestedAt"`
	ExpiresAt   time.Time          `json:"expiresAt"`
	Status      run.ApprovalStatus `json:"status"`
	Decision    run.Decision       `json:"decision,omitempty"`
	DecidedAt   time.Time          `json:"decidedAt,omitzero"`
}

// New returns the receipt of a run. v is the run's view with its records ([run.View.AddRecords]), asked are the user's
// words, and cards are the run's approvals. entries are the run's audit chain, at least up to the run's head; later
// entries are left out. The receipt does not include plans that were not confirmed, which are only in the session's own
// log.
func New(r run.Run, v *run.View, asked string, cards []run.Approval, entries []audit.Entry, now time.Time) Receipt {
	out := Receipt{Version: 1, IssuedAt: now.UTC().Truncate(time.Millisecond), RunID: r.ID, ThreadID: r.ThreadID,
		User: r.UID, Agent: r.AgentName(), DelegatedBy: v.DelegatedBy, TimeZone: v.TimeZone,
		Locale: v.Locale, Asked: asked,
		AskedAt: r.CreatedAt, Status: v.Status, Summary: v.Summary, UpdatedAt: v.UpdatedAt, Actions: []Action{},
		Nonce: hex.EncodeToString(r.Nonce), Head: r.Audit, Entries: []audit.Entry{}}
	for _, e := range entries {
		if e.Seq <= r.Audit.Seq {
			out.Entries = append(out.Entries, e)
		}
	}
	for _, c := range cards {
		if c.Kind == run.KindPlan && c.Status == run.ApprovalApproved {
			out.Plans = append(out.Plans, Plan{c.ID, c.Args, c.ArgsHash, c.Decision, c.DecidedAt})
		}
	}
	for _, a := range v.Actions {
		act := Action{ActionView: a, Entries: []int64{}}
		for _, c := range cards {
			if c.ActionID == a.ActionID && c.Kind != run.KindPlan {
				act.Shown = append(act.Shown, cardOf(c))
			}
		}
		for _, e := range out.Entries {
			if e.ActionID == a.ActionID {
				act.Entries = append(act.Entries, e.Seq)
			}
		}
		out.Actions = append(out.Actions, act)
	}
	return out
}

func cardOf(c run.Approval) Card {
	return Card{ApprovalID: c.ID, Kind: c.Kind, Preview: c.Shown(),
		Reason: c.Reason, Rule: c.Rule, Findings: c.Findings, RequestedAt: c.RequestedAt, ExpiresAt: c.ExpiresAt,
		Status: c.Status, Decision: c.Decision, DecidedAt: c.DecidedAt}
}

// A Signer signs with one Ed25519 key.
type Signer interface {
	// Public returns the key's public half.
	Public(ctx context.Context) (Key, error)
	// Sign returns the signature of data, which has at most 64 KiB.
	Sign(ctx context.Context, data []byte) ([]byte, error)
}

// File is a receipt in the form that users receive.
type File struct {
	JWS     string          `json:"jws"`
	Receipt json.RawMessage `json:"receipt"`
}

// statement is the payload of the JWS.
type statement struct {
	RunID  string `json:"runId"`
	SHA256 string `json:"sha256"` // of the receipt's canonical JSON, in hexadecimal
}

// header is the protected header of the JWS, in its canonical order.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

const mediaType = "receipt+jws"

// Issue returns the file of a receipt, in canonical JSON. The error is the signer's, or that of encoding the receipt.
func Issue(ctx context.Context, by Signer, r Receipt) ([]byte, error) {
	content, err := canonical(r)
	if err != nil {
		return nil, err
	}
	key, err := by.Public(ctx)
	if err != nil {
		return nil, err
	}
	head, err := canonical(header{"EdDSA", key.ID, mediaType})
	if err != nil {
		return nil, err
	}
	payload, err := canonical(statement{r.RunID, sum(content)})
	if err != nil {
		return nil, err
	}
	signed := encode(head) + "." + encode(payload)
	signature, err := by.Sign(ctx, []byte(signed))
	if err != nil {
		return nil, err
	}
	return canonical(File{signed + "." + encode(signature), content})
}

func canonical(v any) (json.RawMessage, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(b)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
