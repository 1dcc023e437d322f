package rtmpwire

// Command is a command message, section 7.2.
type Command struct {
	Name        string
	Transaction int   // 0 to 2^31-1; 0 in one that is read also where it has none
	Args        []any // the command object and what follows, of the types of DecodeAMF0 and AppendAMF0
}

// Arg returns an argument, nil when there are fewer.
func (c Command) Arg(i int) any {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return nil
}

// Message returns the message that carries the command.
func (c Command) Message(chunkStream byte, stream uint32) Out {
	body := AppendAMF0(nil, c.Name, float64(c.Transaction))
	return Out{ChunkStream: chunkStream, Stream: stream, Kind: TypeCommandAMF0, Body: AppendAMF0(body, c.Args...)}
}

// Status returns the information object of onStatus and of the response to connect, section 7.2.2; more are further
// members.
func Status(level, code, description string, more ...Property) Object {
	return append(Object{
		{Name: "level", Value: level}, {Name: "code", Value: code}, {Name: "description", Value: description},
	}, more...)
}

// ParseCommand reads a command message; false when p is none.
func ParseCommand(p Packet) (Command, bool) {
	if p.Kind != TypeCommandAMF0 && p.Kind != TypeCommandAMF3 {
		return Command{}, false
	}
	v := p.Values()
	if len(v) == 0 {
		return Command{}, false
	}
	name, ok := v[0].(string)
	c := Command{Name: name}
	if len(v) > 1 {
		if t, number := v[1].(float64); number && t >= 0 && t < 1<<31 {
			c.Transaction = int(t)
		}
		c.Args = v[2:]
	}
	return c, ok
}

// Values returns what a command or data message says. An AMF3 message has a leading byte, behind which there is AMF0 in
// every encoder that sends these.
func (p Packet) Values() []any {
	b := p.Body
	if (p.Kind == TypeCommandAMF3 || p.Kind == TypeDataAMF3) && len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return DecodeAMF0(b)
}
