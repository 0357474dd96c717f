package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// codeTooMany is the error code for a server that offers more than the limits allow.
const codeTooMany fault.Code = "too_many"

// A definition is a server's description of one of its tools.
type definition struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Destructive bool  // the server says so, and does not say that the tool only reads
	wrong       error // why it cannot be read
	// mark is a hash of the server and this definition. It changes with any change of the definition.
	mark string
}

// define parses a server's description of a tool. If it cannot be read, the definition's field wrong says why.
func (c *Client) define(t *mcp.Tool) *definition {
	raw, ok := t.Meta[rawMeta].(string)
	if !ok { // a message in a form that this package does not rewrite: several lines on standard output
		raw = string(marshalled(t))
	}
	var said struct {
		Description any `json:"description"`
		Schema      any `json:"inputSchema"`
		Annotations any `json:"annotations"`
	}
	d := &definition{Name: t.Name}
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber() // float64 cannot represent every 64-bit bound
	if err := dec.Decode(&said); err != nil {
		d.wrong = errors.New("the server's description is not a JSON object")
	}
	d.Description, _ = said.Description.(string)
	if said.Schema == nil || said.Schema == true { // no information about the arguments
		said.Schema = map[string]any{"type": "object"}
	}
	d.Schema = marshalled(said.Schema) // made of maps, so its keys are sorted
	hints, _ := said.Annotations.(map[string]any)
	d.Destructive = hints["destructiveHint"] == true && hints["readOnlyHint"] != true
	d.mark = hash(c.identity, d.Name, d.Description, string(d.Schema), fmt.Sprint(d.Destructive))
	return d
}

// list returns the server's present tools in its order. A name may occur twice.
func (c *Client) list(ctx context.Context) (all []*definition, err error) {
	err = c.do(ctx, false, func(ctx context.Context, s *session) error {
		all, err = c.listOn(ctx, s)
		return err
	})
	return all, err
}

func (c *Client) listOn(ctx context.Context, s *session) (all []*definition, err error) {
	s.listed.Store(true) // set before the list arrives: a change notification during it concerns the next list
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := s.ListTools(ctx, params)
		if err != nil {
			s.listed.Store(false)
			return nil, err
		}
		for _, t := range page.Tools {
			d := c.define(t)
			if same := only(all, d.Name); same == nil || same.mark != d.mark { // two equal entries are one tool
				all = append(all, d)
			}
		}
		if len(all) > maxListed {
			return nil, fault.New(fault.Tool, codeTooMany, "The server %s lists more than %d tools.", c.cfg.Name,
				maxListed)
		}
		if page.NextCursor == "" {
			c.remember(all)
			return all, nil
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, fault.New(fault.Tool, codeTooMany, "The server %s lists its tools on more than %d pages.", c.cfg.Name,
		maxPages)
}

// remember stores the new definitions of the tools in use.
func (c *Client) remember(all []*definition) {
	c.known.Range(func(name, _ any) bool {
		c.known.Store(name, only(all, name.(string)))
		return true
	})
}

// only returns the definition with this name, or nil if there is none or more than one.
func only(all []*definition, name string) *definition {
	named := func(d *definition) bool { return d.Name == name }
	i := slices.IndexFunc(all, named)
	if i < 0 || slices.ContainsFunc(all[i+1:], named) {
		return nil
	}
	return all[i]
}

// now returns the server's present definition of a tool. It returns ToolExecutionError not_applicable if the tool no
// longer exists.
func (c *Client) now(ctx context.Context, name string) (*definition, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	d := only(all, name)
	if d == nil {
		return nil, fault.New(fault.Tool, fault.CodeNotApplicable, "The server %s no longer has this tool.",
			c.cfg.Name)
	}
	return d, nil
}

// unchanged returns nil if the tool's definition has not changed since the tool was made. It asks the server only if
// there may be news: on a new session, or after a change notification.
func (c *Client) unchanged(ctx context.Context, s *session, as *definition) error {
	if !s.listed.Load() {
		if _, err := c.listOn(ctx, s); err != nil {
			return err
		}
	}
	if d := c.lastSaid(as.Name); d == nil || d.mark != as.mark {
		return fault.New(fault.Policy, fault.CodeStaleView,
			"What the server %s says of this tool has changed since it was allowed to be read with, so it was not "+
				"called.", c.cfg.Name)
	}
	return nil
}

// lastSaid returns the last known definition of a tool in use, or nil if the server no longer has the tool.
func (c *Client) lastSaid(name string) *definition {
	d, _ := c.known.Load(name)
	last, _ := d.(*definition)
	return last
}
