package fakegithub

import (
	"net/url"
	"strconv"
)

// The kinds of a user's tokens, with GitHub's own prefixes.
const (
	kindAccess  = "ghu_"
	kindRefresh = "ghr_"
)

// signed is the content of a token.
type signed struct {
	Login  string `json:"login"`
	Grant  int64  `json:"grant"`           // the serial number at which the consent began
	Serial int64  `json:"serial"`          // of this token and the one that was issued with it
	Until  int64  `json:"until,omitempty"` // Unix seconds; 0: no expiry
}

// next returns the next serial number, which is larger than those of earlier servers.
func (o *OAuth) next() int64 {
	o.serial = max(o.serial+1, o.Now().UnixMicro())
	return o.serial
}

// begin returns the tokens of a new consent.
func (o *OAuth) begin(login string) url.Values {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens(login, o.next())
}

// renew invalidates the refresh token and its access token, and returns new ones.
func (o *OAuth) renew(refresh string) (url.Values, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.valid(kindRefresh, refresh)
	if !ok {
		return nil, false
	}
	return o.tokens(t.Login, t.Grant), true
}

func (o *OAuth) tokens(login string, grant int64) url.Values {
	serial, now := o.next(), o.Now()
	o.newest[grant] = serial
	access := signed{Login: login, Grant: grant, Serial: serial}
	answer := url.Values{"token_type": {"bearer"}, "scope": {""}}
	if !o.eternal {
		refresh := access
		access.Until, refresh.Until = now.Add(accessLifetime).Unix(), now.Add(refreshLifetime).Unix()
		answer.Set("expires_in", seconds(accessLifetime.Seconds()))
		answer.Set("refresh_token", o.Sign(kindRefresh, refresh))
		answer.Set("refresh_token_expires_in", seconds(refreshLifetime.Seconds()))
	}
	answer.Set("access_token", o.Sign(kindAccess, access))
	return answer
}

func seconds(s float64) string { return strconv.FormatInt(int64(s), 10) }

// read returns the content of a valid token.
func (o *OAuth) read(kind, token string) (signed, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.valid(kind, token)
}

func (o *OAuth) valid(kind, token string) (t signed, ok bool) {
	if !o.Read(kind, token, &t) {
		return signed{}, false
	}
	ended := t.Until != 0 && o.Now().Unix() >= t.Until
	return t, !ended && t.Serial >= o.newest[t.Grant] && t.Grant > o.gone[t.Login]
}
