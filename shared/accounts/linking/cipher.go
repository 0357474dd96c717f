package linking

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// verifierOf returns the associated data of a consent's PKCE verifier, refreshOf and accessOf those of a link's tokens.
// A ciphertext cannot be decrypted with other associated data.
func (p Provider) verifierOf(uid, state string) []byte { return []byte(uid + "|" + p.ID + "|" + state) }
func (l link) refreshOf() []byte                       { return l.purpose("") }
func (l link) accessOf() []byte                        { return l.purpose("|access") }

// purpose returns the associated data of a token. If the link is bound, they include the account, so that a token in
// the document of another account, or under another name, cannot be decrypted.
func (l link) purpose(which string) []byte {
	of := l.UID + "|" + l.provider.ID + which
	if l.Bound {
		of += "|" + l.identity()
	}
	return []byte(of)
}

// identity returns a hash of the account's ID and names.
func (l link) identity() string {
	text, _ := json.Marshal([]string{l.place().ID, l.Subject, l.Email, l.Login}) // strings always encode
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// seal puts the tokens into the link, each encrypted for its user.
func (a *Accounts) seal(ctx context.Context, l *link, got *oauth2.Token) (err error) {
	l.Refresh = nil
	if got.RefreshToken != "" {
		l.Refresh, err = a.cipher.EncryptWithContext(ctx, []byte(got.RefreshToken), l.refreshOf())
	}
	if err == nil && a.cfg.Keeps {
		l.AccessUntil = ends(got, a.cfg.Now())
		l.Access, err = a.cipher.EncryptWithContext(ctx, []byte(got.AccessToken), l.accessOf())
	}
	if err != nil {
		return a.cfg.unreadable(err)
	}
	return nil
}

// refreshIn returns the link's refresh token.
func (a *Accounts) refreshIn(ctx context.Context, l link) (string, error) {
	return a.unseal(ctx, l.Refresh, l.refreshOf())
}

func (a *Accounts) unseal(ctx context.Context, sealed, purpose []byte) (string, error) {
	secret, err := a.cipher.DecryptWithContext(ctx, sealed, purpose)
	if err != nil {
		return "", a.cfg.unreadable(err)
	}
	return string(secret), nil
}

// unreadable returns the error of a decryption that failed. Tink does not distinguish a wrong key from an unavailable
// key service, so the link is not marked broken.
func (p Provider) unreadable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_key",
		"The linked account's access could not be decrypted or encrypted. Please try again; if it stays so, "+
			"link it again.").Because(errors.New(err.Error())))
}
