package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// The examples ask scripts: a program of yours leaves Provider out, or sets countersign.Gemini.

// A tool is a function with a struct of arguments. What the action returns, and a ToolError, is what the model reads.
func Example() {
	m := newScript(call("get_weather", map[string]any{"city": "Lisbon"}), say("21 degrees."))
	agent, err := countersign.New(countersign.Options{Provider: m, Instructions: "Be brief.",
		Tools: []*countersign.Tool{getWeather}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(context.Background(), "How is Lisbon?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
	// Output: 21 degrees.
}

// The events of a stream, in their order.
func ExampleSession_SendStream() {
	m := newScript(script.Turn{Text: "One moment. ", Calls: []script.Call{
		{Name: "get_weather", Args: map[string]any{"city": "Porto"}}}}, say("No station there."))
	agent, err := countersign.New(countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	var text strings.Builder
	for ev, err := range agent.NewSession().SendStream(context.Background(), "How is Porto?") {
		if err != nil { // one at most, and the last
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case *countersign.Text: // in pieces, as they come
			text.WriteString(ev.Delta)
		case *countersign.ToolStarted:
			fmt.Println("starts", ev.Tool, string(ev.Args))
		case *countersign.ToolFinished:
			fmt.Println("ended", ev.Tool, string(ev.Result), ev.Err, ev.Truncated)
		case *countersign.Finished:
			fmt.Println(ev.Status, ev.Text)
		}
	}
	fmt.Println(text.String())
	// Output:
	// starts get_weather {"city":"Porto"}
	// ended get_weather  no station in Porto false
	// completed No station there.
	// One moment. No station there.
}

// A session outlives its process: here one agent stands for each of two.
func ExampleAgent_Resume() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := embedded.Open(dir, time.Now)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	first, err := countersign.New(countersign.Options{Store: st, Provider: newScript(say("Noted."))})
	if err != nil {
		log.Fatal(err)
	}
	s := first.NewSession()
	if _, err := s.Send(ctx, "The rope is red."); err != nil {
		log.Fatal(err)
	}
	first.Close()

	second, err := countersign.New(countersign.Options{Store: st, Provider: newScript(say("It is red."))})
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	if s, err = second.Resume(ctx, s.ID()); err != nil {
		log.Fatal(err)
	}
	res, err := s.Send(ctx, "Which colour is it?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
	_, err = second.As("somebody else").Resume(ctx, s.ID())
	fmt.Println(errors.Is(err, countersign.ErrNoSession))
	// Output:
	// It is red.
	// true
}

// A file goes to the model with its prompt. Any reader will do: a file, an upload, a part of an e-mail. The content
// decides the type.
func ExampleAttach() {
	m := newScript(say("It costs 1,200 euros."))
	agent, err := countersign.New(countersign.Options{Provider: m})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	offer := strings.NewReader("We offer ten chairs for 1,200 euros.")
	res, err := agent.NewSession().Send(context.Background(), "What does it cost?",
		countersign.Attach("offer.txt", offer))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
	fmt.Println(strings.Contains(asLines(m.Requests()[0].Contents), `"mimeType":"text/plain"`))
	// Output:
	// It costs 1,200 euros.
	// true
}

// Sessions are listed with what became of their last run: one that a crash cut off is found so.
func ExampleAgent_Sessions() {
	ctx := context.Background()
	agent, err := countersign.New(countersign.Options{Provider: newScript(say("Hello."), say("Hello."))})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	for _, prompt := range []string{"Hello, I am Ana.", "What is new?"} {
		if _, err := agent.NewSession().Send(ctx, prompt); err != nil {
			log.Fatal(err)
		}
	}
	for info, err := range agent.Sessions(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Summary, info.MessageCount, info.Status)
	}
	// Output:
	// What is new? 2 completed
	// Hello, I am Ana. 2 completed
}

// Instructions may come from where the agent works. They are asked for once a session and process.
func ExampleOptions_instructionsFunc() {
	dir, err := os.MkdirTemp("", "work")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "AGENT.md"), []byte("Ask before a release."), 0o600); err != nil {
		log.Fatal(err)
	}
	m := newScript(say("Shall I?"))
	agent, err := countersign.New(countersign.Options{Provider: m, Dir: dir,
		InstructionsFunc: func(ctx context.Context, s *countersign.SessionContext) (string, error) {
			notes, err := s.FS.ReadFile("AGENT.md")
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return "You release software. " + string(notes), err
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.NewSession().Send(context.Background(), "Release it."); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Requests()[0].System)
	// Output: You release software. Ask before a release.
}

// An effect needs an approval before it runs: in the process, if Options.Approve is set.
func ExampleDefineEffect() {
	send := countersign.DefineEffect(
		countersign.EffectConfig[mail, string]{Name: "send_mail", Description: "Sends a mail."},
		func(m mail) countersign.Preview { return countersign.Preview{Title: "Mail to " + m.To} },
		func(ctx context.Context, s *countersign.SessionContext, m mail) (string, error) {
			fmt.Println("sent to", m.To) // with s.ActionID, where the service takes an idempotency key
			return "sent", nil
		})
	m := newScript(mailTo("ana@example.com", "bob@example.com"), say("Ana has it."))
	agent, err := countersign.New(countersign.Options{Provider: m, Tools: []*countersign.Tool{send},
		Approve: func(ctx context.Context, a countersign.Approval) (countersign.Decision, error) {
			fmt.Println(a.Preview.Title, string(a.Args))
			if a.Preview.Title == "Mail to ana@example.com" {
				return countersign.Yes(), nil
			}
			return countersign.No("not today"), nil // the model reads why
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.NewSession().Send(context.Background(), "Write to both."); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Mail to ana@example.com {"text":"hello","to":"ana@example.com"}
	// Mail to bob@example.com {"text":"hello","to":"bob@example.com"}
	// sent to ana@example.com
}

// Without Approve the run waits, for days if need be, and whichever process comes later answers and continues.
func ExampleAgent_Approvals() {
	ctx := context.Background()
	p := &post{}
	agent, err := countersign.New(countersign.Options{Provider: newScript(mailTo("ana@example.com"), say("Done.")),
		Tools: p.tools()})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	s := agent.NewSession()
	for ev, err := range s.SendStream(ctx, "Write to Ana.") {
		if err != nil {
			log.Fatal(err)
		}
		if asked, ok := ev.(*countersign.Asked); ok {
			fmt.Println("asked:", asked.Approval.Preview.Title)
		}
	}
	for a, err := range agent.Approvals(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := agent.Resolve(ctx, a, countersign.Edited(mail{To: "b@example.com", Text: "Good day."})); err != nil {
			log.Fatal(err)
		}
	}
	for ev, err := range s.Continue(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if done, ok := ev.(*countersign.Finished); ok {
			fmt.Println(done.Text, p.sent)
		}
	}
	// Output:
	// asked: Mail to ana@example.com
	// Done.
	//
	// On record:
	// Wrote to b@example.com. [b@example.com: Good day.]
}

// An answer of a Go type.
func ExampleSendAs() {
	m := newScript(final(map[string]any{"from": "ACME", "total": 12.5}))
	agent, err := countersign.New(countersign.Options{Provider: m})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	bill, _, err := countersign.SendAs[invoice](context.Background(), agent.NewSession(), "What are we to pay?")
	if err != nil { // an *OutputError holds what came in place of an invoice
		log.Fatal(err)
	}
	fmt.Println(bill.From, bill.Total)
	// Output: ACME 12.5
}

// A session's run that waits, or was cut off, is named by the error of the next Send.
func ExampleOpenError() {
	ctx := context.Background()
	p := &post{}
	agent, err := countersign.New(countersign.Options{Provider: newScript(mailTo("ana@example.com"), say("Hello.")),
		Tools: p.tools()})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	s := agent.NewSession()
	if _, err := s.Send(ctx, "Write to Ana."); err != nil {
		log.Fatal(err)
	}
	_, err = s.Send(ctx, "Never mind, hello!")
	var open *countersign.OpenError
	if errors.As(err, &open) && open.Status == countersign.Waiting {
		fmt.Println("it waits for", open.Approvals[0].Preview.Title)
		if err := s.Abandon(ctx); err != nil {
			log.Fatal(err)
		}
	}
	res, err := s.Send(ctx, "Never mind, hello!")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
	// Output:
	// it waits for Mail to ana@example.com
	// Hello.
}

// Before a conversation becomes too long for the model, a summary replaces its older part.
func ExampleChatCompressed() {
	ctx := context.Background()
	long := strings.Repeat("word ", 2000)
	m := newScript(say(long), say("The user said one."), say("So."))
	agent, err := countersign.New(countersign.Options{Provider: m, CompressionThreshold: 0.002})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	s := agent.NewSession()
	if _, err := s.Send(ctx, "one"); err != nil {
		log.Fatal(err)
	}
	for ev, err := range s.SendStream(ctx, "two") {
		if err != nil {
			log.Fatal(err)
		}
		if z, ok := ev.(*countersign.ChatCompressed); ok {
			fmt.Println("less is told:", z.TokensAfter < z.TokensBefore)
		}
	}
	// Output: less is told: true
}
