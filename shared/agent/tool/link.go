package tool

import (
	"encoding/json"
	"net/url"
)

// Link returns the address at which the user of the place finds what a call has made, by the result that is recorded of
// it, or "". It is an https address without a user's name or password, of at most 2,000 bytes.
func (t *Tool) Link(in Place, result json.RawMessage) (address string) {
	if !t.has.link || result == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			address = ""
		}
	}()
	address = t.link(in, result)
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(address) > maxLink {
		return ""
	}
	return address
}

// maxLink is the longest address of a link, in bytes.
const maxLink = 2000
