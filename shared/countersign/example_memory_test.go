package countersign_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
)

// A tool books within the working hours of its user.
func ExampleAgent_SetPreferences() {
	type Meeting struct {
		Start time.Time `json:"start"`
	}
	book := countersign.DefineTool(countersign.ToolConfig{Name: "book_room", Description: "Books a room."},
		func(ctx context.Context, s *countersign.SessionContext, in Meeting) (string, error) {
			p, err := s.Agent.Preferences(ctx)
			if err != nil {
				return "", err
			}
			end := in.Start.Add(time.Duration(p.MeetingMinutes) * time.Minute)
			if p.WorkingHours != nil && !p.WorkingHours.Contain(in.Start, end) {
				return "", countersign.ToolErrorf("the user does not work then")
			}
			return "booked until " + end.Format(time.RFC3339), nil
		})
	m := newScript(call("book_room", map[string]any{"start": "2027-03-06T09:00:00Z"}),
		call("book_room", map[string]any{"start": "2027-03-08T09:00:00Z"}), say("On Monday."))
	agent, err := countersign.New(countersign.Options{Provider: m, Tools: []*countersign.Tool{book}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	ana, ctx := agent.As("ana"), context.Background()
	p, err := ana.Preferences(ctx)
	if err != nil {
		log.Fatal(err)
	}
	p.MeetingMinutes = 25
	p.WorkingHours = &countersign.WorkingHours{Days: []string{"mon", "tue"}, From: "09:00", To: "17:30",
		TimeZone: "Europe/Berlin"}
	if _, err := ana.SetPreferences(ctx, p); err != nil {
		log.Fatal(err)
	}
	for ev, err := range ana.NewSession().SendStream(ctx, "A room, please.") {
		if err != nil {
			log.Fatal(err)
		}
		if ended, ok := ev.(*countersign.ToolFinished); ok {
			fmt.Println(string(ended.Result), ended.Err)
		}
	}
	// Output:
	//  the user does not work then
	// "booked until 2027-03-08T09:25:00Z" <nil>
}

// A note that one session keeps, after an approval, is known to the next one.
func ExampleAgent_Notes() {
	m := newScript(call("remember", map[string]any{"text": "Ana's dog is called Rex."}), say("Noted."), say("Rex."))
	agent, err := countersign.New(countersign.Options{Provider: m, Memory: true,
		Approve: func(_ context.Context, a countersign.Approval) (countersign.Decision, error) {
			fmt.Println(a.Preview.Title, string(a.Args))
			return countersign.Yes(), nil
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	ctx := context.Background()
	for _, prompt := range []string{"My dog is called Rex.", "What is my dog called?"} {
		res, err := agent.NewSession().Send(ctx, prompt)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text)
	}
	notes, err := agent.Notes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range notes {
		fmt.Println("note:", n.Text)
	}
	// Output:
	// Remember a note {"text":"Ana's dog is called Rex."}
	// Noted.
	// Rex.
	// note: Ana's dog is called Rex.
}
