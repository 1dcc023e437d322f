package encode

// State is where a child process is in its life. It only moves forward; to try again, make a new Process.
type State string

// The states.
const (
	Starting  State = "starting"
	Running   State = "running"
	Finishing State = "finishing" // all input is given, the rest of the output is awaited
	Finished  State = "finished"
	Failed    State = "failed" // it couldn't be started or ended by itself with an error
	Killed    State = "killed" // ended by us: cancelled, stalled, or its input or output broke
)

// States lists every state.
func States() []State { return []State{Starting, Running, Finishing, Finished, Failed, Killed} }

// Fact is something that happened to a child process.
type Fact string

// The facts.
const (
	Spawned    Fact = "spawned"
	SpawnBroke Fact = "spawn_broke"
	InputEnded Fact = "input_ended"
	Succeeded  Fact = "succeeded" // exit status 0
	Broke      Fact = "broke"     // any other end that we did not cause
	Cut        Fact = "cut"       // we sent SIGKILL
)

// Facts lists every fact.
func Facts() []Fact { return []Fact{Spawned, SpawnBroke, InputEnded, Succeeded, Broke, Cut} }

var next = map[State]map[Fact]State{ //nolint:gochecknoglobals // transition table
	Starting:  {Spawned: Running, SpawnBroke: Failed, Cut: Killed},
	Running:   {InputEnded: Finishing, Succeeded: Finished, Broke: Failed, Cut: Killed},
	Finishing: {Succeeded: Finished, Broke: Failed, Cut: Killed},
	Finished:  {},
	Failed:    {},
	Killed:    {},
}

// Next returns the state after f, and false where f means nothing here.
func Next(s State, f Fact) (State, bool) {
	to, ok := next[s][f]
	return to, ok
}
