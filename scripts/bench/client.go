package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// client is one user on one connection. It is handwritten to leave the CPU to the model.
type client struct {
	host, token string
	prompts     map[work]string
	agents      map[work]string
	every       time.Duration // between two looks at a run, where the server does not wait for its end

	conn  net.Conn
	read  *bufio.Reader
	polls int
}

// answer has the fields of a response that the client reads.
type answer struct {
	RunID, Status string
	Approvals     []struct{ ApprovalID string }
}

// unit performs a task once, and returns its duration.
func (c *client) unit(w work) (time.Duration, error) {
	began := time.Now()
	a, err := c.ask(w)
	if err != nil {
		return 0, err
	}
	if w == text {
		if a.Status != "completed" {
			return 0, fmt.Errorf("a turn is %s", a.Status)
		}
		return time.Since(began), nil
	}
	if len(a.Approvals) != 1 {
		return 0, fmt.Errorf("a run has %d approvals, and is %s", len(a.Approvals), a.Status)
	}
	a, err = c.approve(a.Approvals[0].ApprovalID)
	if err == nil {
		_, err = c.end(a)
	}
	return time.Since(began), err
}

func (c *client) ask(w work) (answer, error) {
	body := map[string]string{"prompt": c.prompts[w]}
	if agent := c.agents[w]; agent != "" {
		body["agent"] = agent
	}
	return c.send(http.MethodPost, "/api/agent/run", body)
}

// approve approves a call, and asks the server to answer when the run has ended.
func (c *client) approve(id string) (answer, error) {
	return c.send(http.MethodPost, "/api/agent/approvals/resolve",
		map[string]string{"approvalId": id, "decision": "approve_once"})
}

// end reads a run until it has ended, if its server did not wait for that.
func (c *client) end(a answer) (answer, error) {
	for began := time.Now(); a.Status != "completed"; {
		if a.Status == "failed" || a.Status == "" || time.Since(began) > 30*time.Second {
			return a, fmt.Errorf("a run is %q after its approval", a.Status)
		}
		time.Sleep(max(c.every, 2*time.Millisecond))
		c.polls++
		var err error
		if a, err = c.send(http.MethodGet, "/api/agent/runs/"+a.RunID, nil); err != nil {
			return a, err
		}
	}
	return a, nil
}

// refused is an answer that is not 200.
type refused struct {
	status int
	body   []byte
}

func (r refused) Error() string { return fmt.Sprintf("answered %d: %.300s", r.status, r.body) }

func (c *client) send(method, path string, body any) (a answer, err error) {
	status, text, err := c.exchange(method, path, body)
	if err != nil {
		c.close()
		return a, err
	}
	if status != http.StatusOK && status != http.StatusAccepted { // 202: the run continues
		return a, refused{status, text}
	}
	return a, json.Unmarshal(text, &a)
}

func (c *client) exchange(method, path string, body any) (status int, text []byte, err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.host, time.Second); err != nil {
			c.conn = nil
			return 0, nil, err
		}
		c.read = bufio.NewReader(c.conn)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: %s\r\nPrefer: wait=30\r\n", method, path, c.host)
	if c.token != "" {
		fmt.Fprintf(&out, "Authorization: Bearer %s\r\n", c.token)
	}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		fmt.Fprintf(&out, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(data), data)
	} else {
		out.WriteString("\r\n")
	}
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(out.Bytes()); err != nil {
		return 0, nil, err
	}
	res, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(res.Body)
	if err == nil && res.Close {
		c.close()
	}
	return res.StatusCode, text, errors.Join(err, res.Body.Close())
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
