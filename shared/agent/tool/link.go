package tool

import (
	"encoding/json"
	"net/url"
)

// Link returns the address at which the user of the account or host finds what the call created, or "". result is the
// recorded result. The address is https, contains no user name or password, and has at most 2,000 bytes.
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

// maxLink is the maximum length of a link's address, in bytes.
const maxLink = 2000
