// Package enrols is the part that adds users' passkeys, with a key of Cloud KMS or the one in DATA_DIR.
package enrols

import (
	"context"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/accounts/passkeys"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/signs"
)

// Part serves passkeys if STRONG_APPROVAL is set.
var Part = With()

// With returns the part with options for the client of Cloud KMS.
func With(opts ...option.ClientOption) app.Part {
	return app.Part{Name: "enrolment", Open: func(ctx context.Context, b *app.Builder) error {
		if b.Env.Strong == nil {
			return nil
		}
		keys, err := Open(ctx, b, opts...)
		if err == nil {
			b.API.Passkeys = kept{keys}
		}
		return err
	}}
}

// Open returns the passkeys of a deployment in which decisions need some.
func Open(ctx context.Context, b *app.Builder, opts ...option.ClientOption) (*passkeys.Passkeys, error) {
	strong := *b.Env.Strong
	if name := b.Config.EnrolmentKMSKey; name != "" {
		key, err := signs.Open(ctx, name, opts...)
		if err != nil {
			return nil, err
		}
		b.Closes(key)
		strong.Keys = strong.Keys.With(key)
	}
	return &passkeys.Passkeys{Store: b.Store, Strong: &strong, Now: b.Now, AuditDays: b.Config.AuditDays}, nil
}

// kept serves passkeys to the API.
type kept struct{ *passkeys.Passkeys }

func (k kept) List(ctx context.Context, uid string) (any, error) { return k.Passkeys.List(ctx, uid) }

func (k kept) Add(ctx context.Context, uid string, in api.NewPasskey) (any, error) {
	return k.Passkeys.Add(ctx, uid, passkeys.New{Name: in.Name, Answer: in.Credential, Code: in.Code, Auth: in.Auth})
}

func (k kept) Rename(ctx context.Context, uid, id, name string) (any, error) {
	return k.Passkeys.Rename(ctx, uid, id, name)
}

func (k kept) Proof(auth decision.Auth) string { return string(k.ProofFor(auth)) }
